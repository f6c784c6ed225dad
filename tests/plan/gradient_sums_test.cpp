#include "outcome.hpp"

#include <algorithm>
#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace gradient_sums_test {

template <class T> struct gradient_sums : testing::Test {};
TYPED_TEST_SUITE(gradient_sums, every_target, target_name);

enum class kind { residual, of_a_parameter, of_one_gradient, alone };

/// A norm of x, and a sum that also reads x, so that x has two gradients to add. The columns of their sum are the gradient of a bias.
struct normalised {
  kind what;
  bool root_mean_square;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace init = isotope::init;
    const auto w = s.param("w", {8, 8}, init::normal(0.5));
    const auto x = what == kind::of_a_parameter ? w : matmul(s.input("x", {6, 8}), w) + s.param("bias", {8}, init::zeros);
    const auto y = root_mean_square ? rms_norm(x, s.param("rms", {8}, init::normal(0.7))) : isotope::nn::layer_norm(s / "norm", x);
    const auto z = what == kind::alone ? y : what == kind::of_one_gradient ? x + y : x + tanh(y);
    return cast(mean(square(z * s.param("k", {8}, init::normal(0.6)))), isotope::accum_of(s.machine->program()));
  }
};
/// How many additional operands the gradient of the norm has: 1 with an addend, otherwise 0.
int addends(const isotope::plan_view& p) {
  int more = 0, found = 0;
  for (const auto& s : p.steps) {
    const bool layer = s.op == &isotope::info<isotope::op::layer_norm_grad>, root = s.op == &isotope::info<isotope::op::rms_norm_grad>;
    if (!layer && !root) continue;
    more = s.inputs - (layer ? 6 : 4);
    ++found;
  }
  EXPECT_EQ(found, 1);
  return more;
}

// There is no tolerance: dx is rounded before it is added, like in a separate addition.
TYPED_TEST(gradient_sums, have_the_bits_of_separate_steps) {
  for (const auto what : {kind::residual, kind::of_a_parameter, kind::of_one_gradient, kind::alone})
    for (const bool root_mean_square : {false, true}) {
      const normalised model{what, root_mean_square};
      const auto joined = planned<TypeParam>(model, {.join_sums = false}), separate = planned<TypeParam>(model, {.fuse = false});
      EXPECT_EQ(difference(step<TypeParam>(joined), step<TypeParam>(separate)), "") << int(what) << root_mean_square;
    }
}
TYPED_TEST(gradient_sums, are_made_by_the_gradient_of_the_norm_where_its_kernel_can) {
  const auto& all = isotope::kernel_table<TypeParam>;
  const auto runs = std::find_if(all.begin(), all.end(),
                                 [](const isotope::kernel_info& k) { return k.op == &isotope::info<isotope::op::layer_norm_grad>; });
  ASSERT_NE(runs, all.end());
  const int joined = runs->takes_addend ? 1 : 0;
  for (const bool root_mean_square : {false, true}) {
    EXPECT_EQ(addends(planned<TypeParam>(normalised{kind::residual, root_mean_square})), joined);
    EXPECT_EQ(addends(planned<TypeParam>(normalised{kind::of_one_gradient, root_mean_square})), joined);
    EXPECT_EQ(addends(planned<TypeParam>(normalised{kind::alone, root_mean_square})), 0) << "there is one gradient";
    EXPECT_EQ(addends(planned<TypeParam>(normalised{kind::residual, root_mean_square}, {.fuse = false})), 0);
    // The gradient of a parameter has the accumulation format, dx the format of x.
    const bool narrow = TypeParam::precision::type != TypeParam::precision::accum_type;
    EXPECT_EQ(addends(planned<TypeParam>(normalised{kind::of_a_parameter, root_mean_square})), narrow ? 0 : joined);
  }
}

// Both sides add six numbers of at most 4, so they differ by at most 2 x 5 x 24 x 2^-24 in the gradient of the bias; the gradients of weights and the bias
// of the norm, of at most 6 x 4 x 8, may be added in another order, too.
TYPED_TEST(gradient_sums, of_columns_are_made_by_the_gradient_of_the_norm_where_its_kernel_can) {
  const auto& all = isotope::kernel_table<TypeParam>;
  for (const bool root_mean_square : {false, true}) {
    const auto* op = root_mean_square ? &isotope::info<isotope::op::rms_norm_grad> : &isotope::info<isotope::op::layer_norm_grad>;
    const auto runs = std::find_if(all.begin(), all.end(), [&](const isotope::kernel_info& k) { return k.op == op; });
    for (const auto what : {kind::residual, kind::alone}) {
      const normalised model{what, root_mean_square};
      const auto joined = planned<TypeParam>(model), separate = planned<TypeParam>(model, {.join_sums = false});
      const auto sums = std::count_if(joined.steps.begin(), joined.steps.end(), [](const isotope::step& s) { return s.summed >= 0; });
      EXPECT_EQ(sums, runs->column_sums != nullptr && runs->takes_addend ? 1 : 0);
      EXPECT_EQ(joined.steps.size() + std::size_t(sums), separate.steps.size());
      const auto got = step<TypeParam>(joined), want = step<TypeParam>(separate);
      ASSERT_EQ(got.gradients.size(), want.gradients.size());
      for (const auto& [path, values] : want.gradients)
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(got.gradients.at(path)[i], values[i], 240 * 8 * 0x1p-24) << path << i;
    }
  }
}

/// A kernel that does not support addends, as kernels from outside the library may be.
template <class Op, class P, class Set> struct without_addend : isotope::cpu::kernel<Op, P, Set> {
  static constexpr bool takes_addend = false;
};
TEST(gradient_sums_of_a_target, are_steps_where_the_kernel_that_runs_takes_no_addend) {
  using isotope::op::layer_norm_grad, isotope::precision::f32, isotope::kernels::portable;
  using own = boost::mp11::mp_list<without_addend<layer_norm_grad, f32, portable>>;
  using T = isotope::target<isotope::backend::cpu, f32, portable, own>;
  EXPECT_EQ(addends(planned<T>(normalised{kind::residual, false})), 0);
  EXPECT_EQ(addends(planned<T>(normalised{kind::residual, true})), 1);
}

TEST(gradient_sums_of_gpt, are_a_step_less_for_every_norm_but_the_last) {
  const isotope::model::gpt_loss_of model{{3, 2, 16, 11, 6}, 2, 5};
  const auto joined = planned<on_cpu<isotope::precision::f32, isotope::kernels::reference>>(model);
  int sums = 0;
  for (const auto& s : joined.steps) sums += s.op == &isotope::info<isotope::op::layer_norm_grad> && s.inputs == 7;
  EXPECT_EQ(sums, 6);
}

}  // namespace gradient_sums_test
