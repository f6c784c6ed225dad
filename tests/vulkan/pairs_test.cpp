// Two steps that one dispatch records: a norm with the gemm of few rows that reads it, and cached attention of one query with what appends its key and value.
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>

#include <cmath>
#include <vector>

namespace isotope {
namespace pairs_test {

constexpr model::gpt size{.layers = 2, .heads = 4, .width = 64, .vocab = 65, .context = 40};
using oracle = target<backend::cpu, precision::f32, kernels::reference>;
using here = target<backend::vulkan, precision::f32, kernels::portable>;

/// Logits of `steps` steps of decoding, the slots in descending order.
template <class T> std::vector<float> decoded(const device<T>& on, int slots, int steps) {
  std::vector<owned_plan> plans;
  plans.push_back({"decode", *plan_inference<T>(model::gpt_cached_logits_of{size, slots, slots, 0})});
  auto s = *on.load(std::move(plans));
  s.initialize(3);
  std::vector<float> all;
  std::vector<std::int32_t> tokens(std::size_t(slots), 0), sequence = tokens, position = tokens;
  for (int t = 0; t < steps; ++t) {
    for (int k = 0; k < slots; ++k) {
      tokens[std::size_t(k)] = (7 * t + 13 * k) % size.vocab;
      sequence[std::size_t(k)] = slots - 1 - k;
      position[std::size_t(k)] = t;
    }
    EXPECT_TRUE(s.template set<std::int32_t>("tokens", tokens) && s.template set<std::int32_t>("sequence", sequence) &&
                s.template set<std::int32_t>("position", position) && s.run_plan(0));
    const auto logits = *s.template output<float>("output", 0);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}
/// The dispatches of a plan, by the name of their code.
template <class T, class Model> std::vector<std::string> names(const device<T>& on, const Model& model) {
  std::vector<owned_plan> plans;
  plans.push_back({"plan", *plan_inference<T>(model)});
  auto s = *on.load(std::move(plans));
  std::vector<std::string> all;
  for (const auto& d : s.dispatches()) all.emplace_back(d.code->name);
  return all;
}
std::ptrdiff_t count(const std::vector<std::string>& all, std::string_view part) {
  return std::ranges::count_if(all, [&](const std::string& name) { return name.find(part) != name.npos; });
}
device<here> open_here() {
  auto& shared = vulkan_test::test_device();
  return device<here>::over(shared.context, shared.pipelines);
}

TEST(pairs, decode_as_the_steps_do_one_by_one) {
  const auto cpu = device<oracle>::open({.threads = 1});
  ASSERT_TRUE(cpu.ok());
  for (const int slots : {1, 3}) {
    const auto wanted = decoded<oracle>(*cpu, slots, 6), got = decoded<here>(open_here(), slots, 6);
    ASSERT_EQ(got.size(), wanted.size());
    // Logits are below 1, and sums of 64 to 256 terms in two layers are rounded to 2^-24 of their magnitudes.
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(std::fabs(got[i] - wanted[i]) <= 2e-5f) << slots << " " << i;
  }
}
TEST(pairs, take_five_dispatches_of_a_layer_for_one_token) {
  const auto one = names<here>(open_here(), model::gpt_cached_logits_of{size, 1, 1, 0});
  EXPECT_EQ(count(one, "norm"), 2 * size.layers + 1) << "each with its product";
  EXPECT_EQ(count(one, "cache_append"), 0);
  EXPECT_EQ(one.size(), std::size_t(5 * size.layers + 5)) << "two embeddings, their sum, the head and the copy of the logits";
  const auto three = names<here>(open_here(), model::gpt_cached_logits_of{size, 3, 3, 0});
  EXPECT_EQ(count(three, "cache_append"), size.layers) << "several rows may extend one sequence";
}

/// A norm whose result is also read elsewhere, before a product of `rows` rows.
struct read_twice {
  int rows = 2;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto y = nn::layer_norm(s / "norm", s.input("x", {rows, 64}));
    const auto z = matmul(y, transpose(s.param("weight", {64, 64}, init::normal(0.1))));
    return concat({z, y}, 0);
  }
};
template <class T> std::vector<float> result_of(const device<T>& on, const read_twice& model) {
  std::vector<owned_plan> plans;
  plans.push_back({"plan", *plan_inference<T>(model)});
  auto s = *on.load(std::move(plans));
  s.initialize(5);
  std::vector<float> x(std::size_t(model.rows) * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 13) - 0.25f * float(i % 7);
  EXPECT_TRUE(s.template set<float>("x", x) && s.run_plan(0));
  const auto y = *s.template output<float>("output", 0);
  return {y.begin(), y.end()};
}
TEST(pairs, store_what_others_read_of_the_norm) {
  const auto cpu = device<oracle>::open({.threads = 1});
  ASSERT_TRUE(cpu.ok());
  for (const int rows : {2, 12}) {
    const auto all = names<here>(open_here(), read_twice{rows});
    EXPECT_EQ(count(all, "rows_norm"), rows == 2 ? 1 : 0) << "more rows take a product of their own";
    const auto wanted = result_of<oracle>(*cpu, {rows}), got = result_of<here>(open_here(), {rows});
    ASSERT_EQ(got.size(), wanted.size());
    // Numbers up to 3, sums of 64 products below 1.
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(std::fabs(got[i] - wanted[i]) <= 1e-5f) << rows << " " << i;
  }
}
}  // namespace pairs_test
}  // namespace isotope
