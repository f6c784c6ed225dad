// Rows of logits are padded to a length that is fast for matmuls. Loss, gradients and the shapes of parameters do not change.
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/vulkan.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/isotope.hpp>

#include <cmath>
#include <vector>

namespace isotope {
namespace padded_head_test {

constexpr model::gpt odd{.layers = 1, .heads = 2, .width = 16, .vocab = 1003, .context = 8}, few{1, 2, 16, 65, 8};
using oracle = target<backend::cpu, precision::f32, kernels::reference>;
template <class P> using here = target<backend::vulkan, P>;

template <class T> int operands_of(const model::gpt& size, const shape& s, dtype type) {
  const auto plan = plan_training<T>(model::gpt_loss_of{size, 2, 8});
  EXPECT_TRUE(bool(plan)) << plan.error().line();
  const plan_view p = *plan;
  int n = 0;
  for (const auto& o : p.operands) n += o.dims == s && o.type == type;
  return n;
}
template <class Session> std::vector<float> after_steps(Session s, double& loss) {
  s.initialize(3);
  std::vector<std::int32_t> tokens, targets;
  for (std::uint64_t i = 0; i < 16; ++i) {
    tokens.push_back(std::int32_t(philox(1, i, 0, 0)[0] % 1003));
    targets.push_back(i % 5 == 4 ? 1003 : std::int32_t(philox(1, i, 1, 0)[0] % 1003));  // 1003 is padding and not a class
  }
  const batch b{tokens, targets};
  step_scalars x;
  x.learning_rate = 1e-2f;
  x.clip_norm = 1;
  for (x.optimizer_step = 1; x.optimizer_step <= 3; ++x.optimizer_step) loss = s.step(b, x).loss;
  std::vector<float> all;
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    std::vector<float> some(std::size_t(s.parameters()[k].dims.count()));
    EXPECT_TRUE(s.read(tensor_kind::parameter, k, std::span(some)).ok());
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(padded_head, has_rows_of_whole_multiples_and_a_gradient_in_accumulation_format) {
  EXPECT_GT(
      operands_of<here<precision::f32>>(odd, {16, 1024}, dtype::f32) + operands_of<here<precision::f32>>(odd, {2, 8, 1024}, dtype::f32), 0);
  EXPECT_GT(operands_of<here<precision::bf16>>(odd, {1024, 16}, dtype::f32), 0) << "the gradient of the table is summed in f32";
  EXPECT_EQ(operands_of<oracle>(odd, {2, 8, 1024}, dtype::f32), 0);
  EXPECT_EQ(operands_of<here<precision::f32>>(few, {2, 8, 128}, dtype::f32), 0) << "65 columns would nearly double";
}
TEST(padded_head, trains_as_one_that_is_not_padded) {
  auto cpu = device<oracle>::open({.threads = 1});
  ASSERT_TRUE(cpu.ok());
  auto& shared = vulkan_test::test_device();
  const auto gpu = device<here<precision::f32>>::over(shared.context, shared.pipelines);
  double wanted_loss = 0, loss = 0;
  const auto wanted = after_steps(*cpu->load(*plan_training<oracle>(model::gpt_loss_of{odd, 2, 8})), wanted_loss);
  const auto got = after_steps(*gpu.load(*plan_training<here<precision::f32>>(model::gpt_loss_of{odd, 2, 8})), loss);
  // Three steps of f32 arithmetic have roundings of 2^-24 in sums of a few hundred terms.
  EXPECT_NEAR(loss, wanted_loss, 1e-5 * wanted_loss);
  ASSERT_EQ(got.size(), wanted.size());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += double(got[i] - wanted[i]) * double(got[i] - wanted[i]);
    norm += double(wanted[i]) * double(wanted[i]);
  }
  // If a gradient is near zero, AdamW may take a step of either sign, so a few of 17,000 elements may differ by 2 x 3 x 1e-2.
  EXPECT_LE(std::sqrt(error / norm), 2e-3);
}
}  // namespace padded_head_test
}  // namespace isotope
