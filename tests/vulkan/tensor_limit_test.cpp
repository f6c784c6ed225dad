/// Launches without a plan are checked against the same limit as plans. Sizes are made up, and nothing is allocated.
#include <isotope/backend/vulkan/tensor_limit.hpp>
#include <isotope/op/matmul.hpp>

#include <gtest/gtest.h>

#include <string>

namespace isotope::vulkan {
namespace tensor_limit_test {

view of(const shape& s, dtype t) { return {0, s.count() * size_of(t), s, dense_strides(s), t}; }

TEST(vulkan_tensor_limit, a_result_of_more_than_4_gib_is_refused_in_the_words_that_refuse_a_plan) {
  const view in[] = {of({32768, 768}, dtype::f32), of({768, 50257}, dtype::f32)}, out[] = {of({32768, 50257}, dtype::f32)};
  const auto r = indexable("matmul", in, out);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::over_budget);
  EXPECT_EQ(r.error().line(),
            "matmul [32768,50257] has 6587285504 bytes, vulkan takes at most 4294967296 per tensor: lower the batch or split it");
  step s;
  s.outputs = 1;
  s.op = &info<op::matmul>;
  operand o;
  o.dims = out[0].dims;
  o.bytes = out[0].bytes;
  o.region = value_kind::temp;
  plan_view plan;
  plan.steps = {&s, 1};
  plan.operands = {&o, 1};
  EXPECT_EQ(r.error().line(), over_tensor_limit(plan, "vulkan", tensor_bytes).view());
}
TEST(vulkan_tensor_limit, inputs_count_too_and_the_limit_itself_is_taken) {
  const view most[] = {of({1 << 15, 1 << 15}, dtype::f32)}, beyond[] = {of({(1 << 30) + 1}, dtype::f32)},
             half[] = {of({1 << 15, 1 << 16}, dtype::bf16)};
  EXPECT_TRUE(indexable("copy", most, most).ok());
  EXPECT_TRUE(indexable("copy", half, half).ok());
  EXPECT_FALSE(indexable("copy", beyond, most).ok());
  EXPECT_FALSE(indexable("copy", most, beyond).ok());
  EXPECT_TRUE(indexable("fill", {}, most).ok());
  EXPECT_TRUE(indexable("attention", shape{1 << 15, 1 << 15}, dtype::f32).ok());
  EXPECT_EQ(indexable("attention", shape{1024, 1024, 2304}, dtype::f32).error().line().substr(0, 47),
            "attention [1024,1024,2304] has 9663676416 bytes");
}

}  // namespace tensor_limit_test
}  // namespace isotope::vulkan
