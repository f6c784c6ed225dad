// The formats of each class of ops: matmuls and element-wise ops give the program's format; sums over many elements, statistics, losses and optimiser state
// have the accumulation format; and ops that move elements keep the format. There are five cases: three precisions, and f32 with two formats of 16-bit weights.
#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

#include <map>
#include <set>
#include <string>

using namespace plan_test;
namespace iso = isotope;

namespace precision_policy_test {

using iso::dtype;
using formats = std::set<dtype>;

/// The formats of the floating-point operands `first` to `last` of all steps of an op. Outputs come after inputs; negative numbers count from the end.
formats of(const iso::plan_view& p, std::string_view op, int first, int last) {
  formats found;
  for (const auto& s : p.steps) {
    if (s.op->name != op) continue;
    const int n = s.inputs + s.outputs;
    for (int k = (first < 0 ? n + first : first); k <= (last < 0 ? n + last : last); ++k)
      if (const auto t = p.operands[std::size_t(s.operands + k)].type; iso::is_floating(t)) found.insert(t);
  }
  return found;
}

constexpr iso::model::gpt size{2, 2, 32, 40, 16};

template <class P> struct precision_policy : testing::Test {};
using precisions = testing::Types<iso::precision::f32, iso::precision::bf16, iso::precision::f64>;
TYPED_TEST_SUITE(precision_policy, precisions);

TYPED_TEST(precision_policy, of_training_gives_every_class_of_ops_its_format) {
  using T = on_cpu<TypeParam, iso::kernels::reference>;
  const formats own = {TypeParam::type}, wide = {TypeParam::accum_type};
  const auto plan = iso::plan_training<T>(iso::model::gpt_loss_of{size, 2, 16}, {.fuse = false});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const iso::plan_view p = *plan;
  EXPECT_EQ(of(p, "matmul", 0, 1), own) << "products read";
  EXPECT_EQ(of(p, "attention", 0, 0), own);
  EXPECT_EQ(of(p, "elementwise", 0, -1), own) << "element by element";
  EXPECT_EQ(of(p, "embedding", 1, -1), own) << "moved";
  EXPECT_EQ(of(p, "layer_norm", -2, -1), wide) << "statistics";
  EXPECT_EQ(of(p, "cross_entropy", -3, -1), wide) << "the loss, and the maxima and sums of its rows";
  EXPECT_EQ(of(p, "global_norm", 0, -1), wide) << "gradients of parameters";
  EXPECT_EQ(of(p, "adamw", 0, 2), wide) << "weights and moments";
}

struct precision_policy_of_weights : testing::TestWithParam<dtype> {};
TEST_P(precision_policy_of_weights, narrows_what_products_read_of_parameters_alone) {
  using T = on_cpu<iso::precision::f32, iso::kernels::reference>;
  const auto how = GetParam() == dtype::f16 ? iso::weights::f16 : iso::weights::bf16;
  const auto plan = iso::plan_inference<T>(iso::model::gpt_logits_of{size, 2, 16}, 0, false, false, how);
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const iso::plan_view p = *plan;
  EXPECT_EQ(of(p, "matmul", 0, 0), formats{dtype::f32});
  EXPECT_EQ(of(p, "matmul", 1, 1), formats{GetParam()});
  EXPECT_EQ(of(p, "matmul", -1, -1), formats{dtype::f32});
  for (const auto op : {"elementwise", "layer_norm", "attention"}) EXPECT_EQ(of(p, op, 0, -1), formats{dtype::f32}) << op;
}
INSTANTIATE_TEST_SUITE_P(both, precision_policy_of_weights, testing::Values(dtype::f16, dtype::bf16));

}  // namespace precision_policy_test
