/// Variants of products that are timed when a plan is loaded: they are kept in a file and taken from it, and they never change a bit.
#include <gtest/gtest.h>

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/queue/choice_file.hpp>
#include <isotope/calibrate/use_rates.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <string>
#include <vector>

#include "../io/scratch_folder.hpp"

namespace isotope {
namespace cpu_autotune_test {

using f32 = target<backend::cpu, precision::f32, kernels::native>;

/// y (M, 72) = x (M, 80) w, where w is (72, 80) transposed, so that either operand may be packed.
struct product {
  std::int64_t M;
  template <Machine M_> constexpr tensor<M_> operator()(scope<M_> s) const {
    return matmul(s.param("x", {M, 80}, init::normal(1)), transpose(s.param("w", {72, 80}, init::normal(1))));
  }
};
struct loaded {
  std::string chosen;
  std::vector<float> y;
  std::vector<std::string> messages;
};
loaded run(std::int64_t M, tuning level, const std::string& cache, int threads, const calibration& rates = {}) {
  auto d = device<f32>::open({.threads = threads, .cache = cache, .autotune = level});
  use_rates(*d, rates);
  auto s = d->load(*plan_inference<f32>(product{M}));
  EXPECT_TRUE(s.ok());
  s->initialize(1);
  loaded r;
  for (const auto& l : s->launches(phase_always))
    for (const auto& v : l.considered)
      if (v.chosen) r.chosen = v.name;
  EXPECT_TRUE(s->run_plan(0).ok());
  const auto y = *s->output<float>("output");
  r.y.assign(y.begin(), y.end());
  r.messages = s->queue().messages();
  return r;
}

TEST(cpu_autotune, measures_what_the_file_lacks_once_and_no_choice_changes_a_bit) {
  const scratch_folder folder;
  for (const std::int64_t M : {2, 40}) {
    const auto off = run(M, tuning::off, "", 1);
    for (const int threads : {1, 2}) {
      const std::string name = "choices" + std::to_string(M);
      const auto first = run(M, tuning::measure, folder.at(name), threads);
      EXPECT_TRUE(first.messages.empty());
      EXPECT_EQ(first.y, off.y);
      const std::string file = folder.read(name + ".cpu"), of_step = " by " + std::to_string(threads) + "\tmeasured " + first.chosen + "\n";
      EXPECT_NE(file.find(of_step), file.npos) << file;
      for (const tuning level : {tuning::measure, tuning::cached}) {
        const auto again = run(M, level, folder.at(name), threads);
        EXPECT_EQ(again.chosen, first.chosen);
        EXPECT_EQ(again.y, off.y);
        EXPECT_EQ(folder.read(name + ".cpu"), file);
      }
    }
  }
}
/// Up to four rows, sizes choose gemv, which adds up in another order than gemms: no file can choose one of those.
TEST(cpu_autotune, takes_no_variant_of_other_bits_from_a_file) {
  const scratch_folder folder;
  const auto off = run(2, tuning::off, "", 1);
  EXPECT_TRUE(off.chosen.starts_with("gemv")) << off.chosen;
  run(2, tuning::measure, folder.at("choices"), 1);
  const std::string text = folder.read("choices.cpu"), first = text.substr(0, text.find('\n'));
  const std::string line = text.substr(first.size() + 1, text.find('\n', first.size() + 1) - first.size() - 1);
  choice_file file(folder.at("choices.cpu"), first.substr(first.find('\t') + 1));
  file.choose(line.substr(0, line.find('\t')), "measured gemm, left operand packed");
  ASSERT_TRUE(file.save());
  const auto again = run(2, tuning::cached, folder.at("choices"), 1);
  EXPECT_TRUE(again.messages.empty());
  EXPECT_EQ(again.chosen, off.chosen);
  EXPECT_EQ(again.y, off.y);
}

TEST(cpu_autotune, calibrations_choose_among_variants_of_the_same_bits) {
  calibration slow_copies, slow_products;
  slow_copies.measured(quantity::stream_small, 1e6);
  slow_products.measured(quantity::product_large, 1e6);
  int other = 0;  // sizes for which the two rates choose two variants
  for (const std::int64_t M : {2, 8, 40, 100}) {
    const auto off = run(M, tuning::off, "", 1);
    const auto copies = run(M, tuning::off, "", 6, slow_copies), products = run(M, tuning::off, "", 6, slow_products);
    EXPECT_EQ(copies.y, off.y);
    EXPECT_EQ(products.y, off.y);
    other += copies.chosen != products.chosen;
  }
  EXPECT_GT(other, 0) << "the rates choose nothing";
}

}  // namespace cpu_autotune_test
}  // namespace isotope
