// Observing a step: what every step of the plan wrote, where the first NaN came from, and where the time went.
#include <isotope/io/json.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/selected.hpp>

#include <isotope/train/gradient_trace.hpp>
#include <isotope/train/node_dump.hpp>
#include <isotope/train/non_finite_node.hpp>
#include <isotope/train/step_trace.hpp>
#include "../device_there.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace iso = isotope;
namespace train = isotope::train;
using target = iso::selected;
using session = iso::device<target>::session;

namespace observe_test {

constexpr iso::model::gpt size{2, 2, 16, 12, 8};
constexpr int rows = 2, length = 8;
const iso::step_scalars scalars{.seed = 5, .counter = 3, .optimizer_step = 1, .learning_rate = 1e-2f, .clip_norm = 1};

struct data {
  std::vector<std::int32_t> tokens, targets;
  std::vector<iso::batch> batches;
  explicit data(int micro_batches) {
    const std::size_t elems = std::size_t(rows * length);
    for (std::size_t i = 0; i < elems * std::size_t(micro_batches); ++i)
      tokens.push_back(std::int32_t(i * 5 % 12)), targets.push_back(std::int32_t(i * 7 % 12));
    for (std::size_t m = 0; m < std::size_t(micro_batches); ++m)
      batches.push_back({std::span<const std::int32_t>(tokens).subspan(m * elems, elems),
                         std::span<const std::int32_t>(targets).subspan(m * elems, elems)});
  }
};

session loaded(int micro_batches = 1) {
  auto device = isotope_test::there(iso::device<target>::open());
  auto plan = iso::plan_training<target>(iso::model::gpt_loss_of{size, rows, length}, {.accumulate = micro_batches > 1});
  auto s = device->load(*std::move(plan));
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().line());
  s->initialize(1);
  return *std::move(s);
}

std::vector<std::uint32_t> bits_of(const session& s) {
  std::vector<std::uint32_t> r;
  std::vector<float> v;
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    v.resize(std::size_t(s.parameters()[k].dims.count()));
    EXPECT_TRUE(s.read(iso::tensor_kind::parameter, k, v).ok());
    for (const float x : v) r.push_back(std::bit_cast<std::uint32_t>(x));
  }
  return r;
}

void poison(session& s, std::size_t k, std::size_t element, float value) {
  std::vector<float> v(std::size_t(s.parameters()[k].dims.count()));
  ASSERT_TRUE(s.read(iso::tensor_kind::parameter, k, v).ok());
  v[element % v.size()] = value;
  ASSERT_TRUE(s.write(iso::tensor_kind::parameter, k, v).ok());
}

TEST(node_dump, has_every_output_and_the_step_has_the_bits_of_any_other) {
  for (const int micro_batches : {1, 3}) {
    const data d(micro_batches);
    session plain = loaded(micro_batches), looked = loaded(micro_batches);
    const auto report = plain.step(d.batches, scalars);
    const auto dump = train::dump_nodes(looked, d.batches, scalars);
    ASSERT_TRUE(dump.ok()) << dump.error().line();
    EXPECT_EQ(dump->report.loss, report.loss);
    EXPECT_EQ(dump->report.grad_norm, report.grad_norm);
    EXPECT_EQ(bits_of(plain), bits_of(looked));
    std::size_t outputs = 0, updates = 0;
    for (const auto& s : looked.plan().steps) (s.phases == iso::phase_last ? updates : outputs) += s.outputs;
    EXPECT_GE(dump->nodes.size(), outputs + updates);
    for (const auto& n : dump->nodes) {
      EXPECT_EQ(n.nans, 0) << n.step;
      EXPECT_EQ(n.infinities, 0) << n.step;
      EXPECT_TRUE(std::isfinite(n.mean) && std::abs(n.mean) <= n.max_abs) << n.step;
    }
    EXPECT_EQ(std::size_t(dump->nodes.back().micro_batch), d.batches.size() - 1);
  }
}

TEST(node_dump, tells_the_loss_among_its_figures) {
  const data d(1);
  session s = loaded();
  const auto dump = train::dump_nodes(s, d.batches, scalars);
  ASSERT_TRUE(dump.ok());
  bool found = false;
  for (const auto& n : dump->nodes)
    if (s.plan().steps[n.step].op->name == "cross_entropy" && n.output == 0) {
      found = true;
      EXPECT_EQ(n.mean, dump->report.loss);
      EXPECT_EQ(n.max_abs, std::abs(dump->report.loss));
    }
  EXPECT_TRUE(found);
  const std::string text = text_of(*dump, s.plan());
  EXPECT_NE(text.find("\tcross_entropy\t-\t0\t[]\tf32\t"), text.npos) << text;
}

TEST(node_dump, counts_what_is_not_finite_apart) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float values[] = {1, -3, std::nanf(""), inf, -inf, 0.5f};
  const auto f = train::figures_of(values);
  EXPECT_EQ(f.max_abs, 3);
  EXPECT_EQ(f.mean, -0.5);
  EXPECT_EQ(f.nans, 1);
  EXPECT_EQ(f.infinities, 2);
  EXPECT_EQ(train::figures_of({}).mean, 0);
}

TEST(gradient_figures, count_zeros_and_what_is_not_finite_apart) {
  const float values[] = {3, 0, std::nanf(""), -4, -0.0f, std::numeric_limits<float>::infinity()};
  const auto f = train::gradient_figures_of(values, 0.5);
  EXPECT_EQ(f.norm, 2.5);
  EXPECT_EQ(f.max_abs, 2);
  EXPECT_EQ(f.zeros, 2);
  EXPECT_EQ(f.not_finite, 2);
  EXPECT_EQ(train::gradient_figures_of({}).norm, 0);
}

TEST(non_finite_node, is_the_first_step_that_reads_the_poisoned_parameter) {
  const data d(1);
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    session s = loaded();
    for (std::size_t k = 0; k < s.parameters().size(); ++k) {
      const std::string path(s.parameters()[k].path.view());
      s.initialize(1);
      poison(s, k, 1, value);
      const auto found = train::find_non_finite(s, d.batches, scalars);
      ASSERT_TRUE(found.ok()) << found.error().line();
      ASSERT_TRUE(found->has_value()) << path;
      EXPECT_NE((*found)->bad_parameters.find(path), std::string::npos) << path << ": " << text_of(**found, s.plan());
      for (std::size_t i = 0; i < (*found)->step; ++i)  // no earlier step reads it
        for (int j = 0; j < s.plan().steps[i].inputs; ++j) {
          const auto& o = s.plan().operands[std::size_t(s.plan().steps[i].operands + j)];
          const auto& slot = s.parameters()[k];
          const bool reads =
              o.region == iso::value_kind::param && o.at == slot.at * iso::size_of(o.type) && o.dims.count() == slot.dims.count();
          EXPECT_FALSE(reads && s.plan().steps[i].op->name != "embedding") << path << " is read by step " << i;
        }
    }
  }
}

TEST(non_finite_node, is_found_again_after_a_skipped_step_which_has_changed_nothing) {
  const data d(2);
  session s = loaded(2);
  poison(s, s.parameters().size() - 1, 0, std::numeric_limits<float>::quiet_NaN());
  const auto before = bits_of(s);
  EXPECT_TRUE(s.step(d.batches, scalars).skipped);
  const auto found = train::find_non_finite(s, d.batches, scalars);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->micro_batch, 0u);
  EXPECT_GT((*found)->count, 0);
  EXPECT_EQ(bits_of(s), before);
  const std::string text = text_of(**found, s.plan());
  EXPECT_NE(text.find("the first nan at element "), text.npos) << text;
  EXPECT_NE(text.find("already not finite: "), text.npos) << text;
}

TEST(non_finite_node, is_none_in_a_healthy_step) {
  const data d(1);
  session s = loaded();
  const auto found = train::find_non_finite(s, d.batches, scalars);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST(step_trace, holds_every_launch_of_the_step_and_the_step_has_the_bits_of_any_other) {
  for (const int micro_batches : {1, 2}) {
    const data d(micro_batches);
    session plain = loaded(micro_batches), timed = loaded(micro_batches);
    const auto report = plain.step(d.batches, scalars);
    double now = 0;
    const auto trace = train::trace_step(timed, d.batches, scalars, [&] { return now += 1e-3; });
    ASSERT_TRUE(trace.ok()) << trace.error().line();
    EXPECT_EQ(trace->report.loss, report.loss);
    EXPECT_EQ(trace->report.grad_norm, report.grad_norm);
    EXPECT_EQ(bits_of(plain), bits_of(timed));
    EXPECT_EQ(plain.counters().launches, std::int64_t(trace->launches.size()));
    const auto usec = train::part_times(*trace, timed.plan());
    double all = 0, end = 0;
    for (const auto& l : trace->launches) {
      EXPECT_GE(l.begin, end - 1e-6);
      EXPECT_GE(l.usec, 0);
      end = l.begin + l.usec;
      if (l.step >= 0) all += l.usec;
    }
    EXPECT_NEAR(usec[0] + usec[1] + usec[2], all, 1e-9 * all);  // the same numbers in another order
  }
}

TEST(step_trace, is_json_that_names_every_launch_its_part_and_its_kernels) {
  const data d(1);
  session s = loaded();
  double now = 0;
  const auto trace = train::trace_step(s, d.batches, scalars, [&] { return now += 1e-3; });
  ASSERT_TRUE(trace.ok()) << trace.error().line();
  const auto json = iso::io::parse_json(train::trace_json(*trace, s.plan(), "a \"test\""), "trace");
  ASSERT_TRUE(json.ok()) << json.error().line();
  const auto* events = json->find("traceEvents");
  ASSERT_NE(events, nullptr);
  std::size_t launches = 0, optimizer = 0;
  for (const auto& e : events->items) {
    if (e.find("ph")->text != "X") continue;
    ++launches;
    optimizer += e.find("cat")->text == "optimizer";
    ASSERT_NE(e.find("args"), nullptr);
    EXPECT_NE(e.find("args")->find("kernels"), nullptr);
    EXPECT_FALSE(e.find("name")->text.empty());
  }
  EXPECT_EQ(launches, trace->launches.size());
  EXPECT_GE(optimizer, 2u);  // norm and update
}

}  // namespace observe_test
