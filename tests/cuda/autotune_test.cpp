/// Variants of products that are timed when a plan is loaded, kept in a file, and taken from it; on a GPU or the emulated device.
#include "../io/scratch_folder.hpp"
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace autotune_test {

using f32 = target<backend::cuda, precision::f32, kernels::native>;

/// y (48, 72) = x (48, 80) w (80, 72), of which three tiles are variants; with a step behind it, which then runs behind them when they are timed.
struct product {
  bool followed = false;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto y = matmul(s.param("x", {48, 80}, init::normal(1)), s.param("w", {80, 72}, init::normal(1)));
    return followed ? softmax(y, -1) : y;
  }
};
struct loaded {
  std::string chosen;
  int fitting = 0;
  std::vector<float> y;
  std::vector<std::string> messages;
  std::int64_t submits = 0;  // of loading
};
loaded run(tuning level, const std::string& cache, const product& model = {}) {
  auto o = cuda_test::test_options();
  o.cache = cache, o.autotune = level, o.diagnose.no_library = true;
  const auto d = isotope_test::there(device<f32>::open(o));
  auto s = d->load(*plan_inference<f32>(model));
  loaded r;
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  r.submits = d->shared()->counters.submits;
  s->initialize(1);
  for (const auto& l : s->launches(phase_always))
    for (const auto& v : l.considered) {
      r.fitting += v.unfit.empty() ? 1 : 0;
      if (v.chosen) r.chosen = v.name;
    }
  EXPECT_TRUE(s->run_plan(0).ok());
  const auto y = *s->output<float>("output");
  r.y.assign(y.begin(), y.end());
  r.messages = s->queue().messages();
  return r;
}

TEST(cuda_autotune, measures_what_the_file_lacks_once_and_takes_it_from_the_file_then) {
  const scratch_folder folder;
  const auto off = run(tuning::off, folder.at("choices"));
  ASSERT_EQ(off.fitting, 3);
  EXPECT_EQ(folder.files(), 0u);
  const auto first = run(tuning::measure, folder.at("choices"));
  EXPECT_GT(first.submits, off.submits) << "kernels were timed";
  EXPECT_TRUE(first.messages.empty()) << first.messages.front();
  const std::string file = folder.read("choices");
  EXPECT_NE(file.find("matmul portable f32[48,80] f32[80,72] > f32[48,72] "), file.npos) << file;
  EXPECT_NE(file.find("\tmeasured " + first.chosen + "\n"), file.npos) << file;
  for (const tuning level : {tuning::measure, tuning::cached}) {
    const auto again = run(level, folder.at("choices"));
    EXPECT_EQ(again.chosen, first.chosen);
    EXPECT_EQ(again.y, first.y) << "the same file, the same bits";
    EXPECT_EQ(again.submits, off.submits) << "nothing is timed";
    EXPECT_EQ(folder.read("choices"), file);
  }
  ASSERT_EQ(off.y.size(), first.y.size());
  for (std::size_t i = 0; i < off.y.size(); ++i) EXPECT_NEAR(off.y[i], first.y[i], 1e-4f);
}
TEST(cuda_autotune, without_measuring_a_missing_choice_is_the_estimate_and_a_broken_file_is_ignored_in_one_line) {
  const scratch_folder folder;
  const auto off = run(tuning::off, ""), cached = run(tuning::cached, folder.at("choices"));
  EXPECT_EQ(cached.chosen, off.chosen);
  EXPECT_EQ(cached.y, off.y);
  const std::string file = folder.read("choices");
  EXPECT_NE(file.find("\testimated " + off.chosen + "\n"), file.npos) << file;
  folder.put("choices", file.substr(0, file.size() / 2));
  const auto cut = run(tuning::cached, folder.at("choices"));
  EXPECT_EQ(cut.chosen, off.chosen);
  ASSERT_EQ(cut.messages.size(), 1u);
  EXPECT_NE(cut.messages[0].find("is ignored and will be replaced: "), std::string::npos) << cut.messages[0];
  EXPECT_EQ(folder.read("choices"), file);
}
TEST(cuda_autotune, variants_are_timed_with_what_follows_them_in_the_plan_and_no_tensor_changes) {
  const scratch_folder folder;
  const auto off = run(tuning::off, folder.at("choices"), {true}), timed = run(tuning::measure, folder.at("choices"), {true});
  EXPECT_NE(folder.read("choices").find("\tmeasured " + timed.chosen + "\n"), std::string::npos);
  EXPECT_TRUE(timed.messages.empty());
  for (std::size_t i = 0; i < off.y.size(); ++i) ASSERT_NEAR(off.y[i], timed.y[i], 1e-5f);
}
TEST(cuda_autotune, a_timer_copies_between_addresses_of_the_device) {
  const auto d = isotope_test::there(device<f32>::open(cuda_test::test_options()));
  auto s = d->load(*plan_inference<f32>(product{}));
  ASSERT_TRUE(s.ok());
  auto timer = s->queue().timer();
  auto m = timer.allocate(1024);
  ASSERT_TRUE(m.ok());
  std::vector<std::uint8_t> bytes(1024), got(1024);
  for (std::size_t i = 0; i < 512; ++i) bytes[i] = std::uint8_t(1 + i % 251);
  ASSERT_TRUE(timer.upload(*m, 0, std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(timer.copy(m->address() + 520, m->address() + 8, 100).ok());
  const memory_piece all{0, std::as_writable_bytes(std::span(got))};
  ASSERT_TRUE(timer.download(*m, {&all, 1}).ok());
  for (std::size_t i = 0; i < 100; ++i) bytes[520 + i] = bytes[8 + i];
  EXPECT_EQ(got, bytes);
}

}  // namespace autotune_test
}  // namespace isotope::cuda
