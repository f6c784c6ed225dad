/// Variants of products that are timed when a plan is loaded, kept in a file, and taken from it.
#include "../io/scratch_folder.hpp"
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace isotope::vulkan {
namespace autotune_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;

/// y (M, 72) = x (M, 80) w (80, 72), of which three tiles are variants; with a step behind it, which then runs behind them when they are timed.
struct product {
  std::int64_t M = 48;
  bool followed = false;
  template <Machine Machine_> constexpr tensor<Machine_> operator()(scope<Machine_> s) const {
    const auto y = matmul(s.param("x", {M, 80}, init::normal(1)), s.param("w", {80, 72}, init::normal(1)));
    return followed ? softmax(y, -1) : y;
  }
};

struct loaded {
  std::string chosen;
  std::vector<std::string> fitting;
  std::vector<float> y;
  std::vector<std::string> messages;
  std::int64_t submits = 0;  // of loading
};
/// Loads and runs the product on a device that is opened for it, as a process does.
loaded run(tuning level, const std::string& cache, const std::string& variant = {}, const product& model = {}) {
  auto o = vulkan_test::test_options();
  o.cache = cache, o.autotune = level, o.diagnose.variant = variant;
  auto c = *isotope_test::there(context::open(o));
  const auto d = device<f32>::over(c, std::make_shared<pipelines>(c));
  loaded r;
  {
    auto s = d.load(*plan_inference<f32>(model));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    r.submits = c->counters.submits;
    s->initialize(1);
    for (const auto& l : s->launches(phase_always))
      for (const auto& v : l.considered) {
        if (v.unfit.empty()) r.fitting.push_back(v.name);
        if (v.chosen) r.chosen = v.name;
      }
    EXPECT_TRUE(s->run_plan(0).ok());
    const auto y = *s->output<float>("output");
    r.y.assign(y.begin(), y.end());
    r.messages = s->queue().messages();
  }
  for (const auto& text : c->messages().texts()) EXPECT_TRUE(vulkan_test::allowed(text)) << text;
  std::erase_if(r.messages, [](const std::string& text) { return text.starts_with("validation: "); });
  return r;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(vulkan_autotune, measures_what_the_file_lacks_once_and_takes_it_from_the_file_then) {
  const scratch_folder folder;
  const std::string cache = folder.at("pipelines");
  const auto off = run(tuning::off, cache);
  ASSERT_EQ(off.fitting.size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(cache + ".choices"));
  const auto first = run(tuning::measure, cache);
  EXPECT_GT(first.submits, off.submits) << "kernels were timed";
  const std::string file = folder.read("pipelines.choices");
  EXPECT_TRUE(has(file, "matmul portable f32[48,80] f32[80,72] > f32[48,72] ") && has(file, "\tmeasured " + first.chosen + "\n")) << file;
  EXPECT_TRUE(first.messages.empty()) << first.messages.front();
  for (const tuning level : {tuning::measure, tuning::cached}) {
    const auto again = run(level, cache);
    EXPECT_EQ(again.chosen, first.chosen);
    EXPECT_EQ(again.y, first.y) << "the same file, the same bits";
    EXPECT_EQ(again.submits, off.submits) << "nothing is timed";
    EXPECT_EQ(folder.read("pipelines.choices"), file);
  }
  ASSERT_EQ(off.y.size(), first.y.size());
  for (std::size_t i = 0; i < off.y.size(); ++i) EXPECT_NEAR(off.y[i], first.y[i], 1e-4f);
}
TEST(vulkan_autotune, variants_are_timed_with_what_follows_them_in_the_plan_and_no_tensor_changes) {
  const scratch_folder folder;
  const std::string cache = folder.at("pipelines");
  const auto off = run(tuning::off, cache, {}, {48, true}), timed = run(tuning::measure, cache, {}, {48, true});
  EXPECT_TRUE(has(folder.read("pipelines.choices"), "\tmeasured " + timed.chosen + "\n"));
  EXPECT_TRUE(timed.messages.empty());
  for (std::size_t i = 0; i < off.y.size(); ++i) ASSERT_NEAR(off.y[i], timed.y[i], 1e-5f);
}
/// A recorder's copies, of no plan.
struct copies_of {
  plan_recorder& by;
  std::vector<dispatch> operator()(const step_recording&) const { return {}; }
  dispatch copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) const { return by.copy(to, from, bytes, by.pool()); }
};
TEST(vulkan_autotune, a_timer_copies_the_blocks_of_16_bytes_that_are_whole) {
  auto c = *isotope_test::there(context::open(vulkan_test::test_options()));
  const auto made = std::make_shared<pipelines>(c);
  const auto d = device<f32>::over(c, made);
  auto s = d.load(*plan_inference<f32>(product{}));
  ASSERT_TRUE(s.ok());
  const copies_of copies{s->queue().recorder()};
  variant_timer timer(c, *made, copies);
  ASSERT_TRUE(timer.compile({}, {}).ok());
  auto m = timer.allocate(2048);
  ASSERT_TRUE(m.ok());
  std::vector<std::uint8_t> bytes(2048), got(2048);
  for (std::size_t i = 0; i < 1024; ++i) bytes[i] = std::uint8_t(1 + i % 251);
  ASSERT_TRUE(timer.upload(*m, 0, std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(timer.copy(m->address() + 1024 + 20, m->address() + 36, 200).ok());
  ASSERT_TRUE(timer.copy(m->address() + 1500, m->address() + 12, 10).ok()) << "no whole block";
  const memory_piece all{0, std::as_writable_bytes(std::span(got))};
  ASSERT_TRUE(timer.download(*m, {&all, 1}).ok());
  for (std::size_t i = 0; i < 176; ++i) bytes[1024 + 32 + i] = bytes[48 + i];
  EXPECT_EQ(got, bytes);
}
TEST(vulkan_autotune, without_measuring_a_missing_choice_is_the_estimate_and_is_written_and_measured_later) {
  const scratch_folder folder;
  const std::string cache = folder.at("pipelines");
  const auto off = run(tuning::off, cache), cached = run(tuning::cached, cache);
  EXPECT_EQ(cached.chosen, off.chosen);
  EXPECT_EQ(cached.submits, off.submits);
  EXPECT_TRUE(has(folder.read("pipelines.choices"), "\testimated " + off.chosen + "\n")) << folder.read("pipelines.choices");
  EXPECT_GT(run(tuning::measure, cache).submits, off.submits);
  EXPECT_FALSE(has(folder.read("pipelines.choices"), "estimated"));
}
TEST(vulkan_autotune, takes_whatever_variant_the_file_names_and_ignores_what_it_does_not_know) {
  const scratch_folder folder;
  const std::string cache = folder.at("pipelines");
  const auto off = run(tuning::cached, cache);
  const std::string file = folder.read("pipelines.choices");
  const auto rewritten = [&](const std::string& variant) {
    std::string text = file.substr(0, file.find("hash\t"));
    const auto at = text.find("estimated ");
    text = text.substr(0, at) + "measured " + variant + '\n';
    folder.put("pipelines.choices", text + "hash\t" + std::to_string(choice_file::hash_of(text)) + '\n');
    return run(tuning::cached, cache);
  };
  for (const std::string& variant : off.fitting) EXPECT_EQ(rewritten(variant).chosen, variant);
  for (const char* unknown : {"4096 x 4096", "", "32 x 32"}) {
    const auto r = rewritten(unknown);
    EXPECT_EQ(r.chosen, off.chosen) << unknown;
    EXPECT_EQ(r.y, off.y);
  }
  EXPECT_EQ(rewritten(off.fitting.front()).chosen, off.fitting.front());
  EXPECT_EQ(run(tuning::cached, cache, off.fitting.back()).chosen, off.fitting.back()) << "a variant that is asked for goes first";
  EXPECT_EQ(run(tuning::off, cache).chosen, off.chosen) << "the file is not read";
  EXPECT_EQ(run(tuning::cached, cache, {}, {80}).messages.size(), 0u) << "another product, the same file";
  EXPECT_TRUE(has(folder.read("pipelines.choices"), "f32[80,80]") && has(folder.read("pipelines.choices"), "f32[48,80]"));
}
TEST(vulkan_autotune, a_file_that_is_cut_or_of_another_device_is_ignored_in_one_line_and_replaced) {
  const scratch_folder folder;
  const std::string cache = folder.at("pipelines");
  const auto off = run(tuning::cached, cache);
  const std::string file = folder.read("pipelines.choices");
  for (const std::string& broken :
       {file.substr(0, file.size() / 2), "isotope choices 1\tanother device" + file.substr(file.find('\n')), std::string("\0\n", 2)}) {
    folder.put("pipelines.choices", broken);
    const auto r = run(tuning::cached, cache);
    EXPECT_EQ(r.chosen, off.chosen);
    ASSERT_EQ(r.messages.size(), 1u);
    EXPECT_TRUE(has(r.messages[0], "pipelines.choices is ignored and will be replaced: ") && !has(r.messages[0], "\n")) << r.messages[0];
    EXPECT_EQ(folder.read("pipelines.choices"), file);
  }
}

}  // namespace autotune_test
}  // namespace isotope::vulkan
