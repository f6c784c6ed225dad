// An element-wise op that is defined outside the library can be part of the bodies that are generated for a device; it only needs a formula.
#include "../extend/softplus.hpp"
#include "device.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>

#include <cmath>
#include <vector>

template <class P, class Set> struct isotope::cuda::kernel<user::softplus_op, P, Set> : emitted_instruction {
  static constexpr ptx::number formula(const ptx::number& x, const ptx::number&, const ptx::number&, const ptx::number&) {
    using namespace ptx::formulas;
    return at_least(x, 0.0f) + log_accurate(1.0f + exp_accurate(-magnitude(x)));
  }
};

namespace isotope {
namespace own_op_test {
using user::softplus;

template <class P, class Set>
using here = target<backend::cuda, P, Set, boost::mp11::mp_list<cuda::kernel<user::softplus_op, P, kernels::reference>>>;

/// A matmul whose result goes through the op, which therefore could be fused into its epilogue.
struct rises {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto y = softplus(matmul(s.input("x", {8, 12}), s.param("w", {12, 16}, init::normal(0.5))) * 1.5) + 1.0;
    return mean(square(y - s.input("goal", {8, 16})));
  }
};

template <class T> class own_op : public ::testing::Test {};
using sets = ::testing::Types<here<precision::f32, kernels::reference>, here<precision::f32, kernels::portable>,
                              here<precision::bf16, kernels::native>>;
TYPED_TEST_SUITE(own_op, sets);

TYPED_TEST(own_op, is_planned_beside_products_and_inside_bodies) {
  const auto plan = plan_training<TypeParam>(rises{});
  ASSERT_TRUE(bool(plan)) << plan.error().line();
  const plan_view p = *plan;
  int alone = 0, inside = 0;
  for (const auto& s : p.steps)
    for (int k = 0; k < s.body_size; ++k)
      if (p.micro_ops[std::size_t(s.body + k)].op == &info<user::softplus_op>) ++(s.op == &info<op::matmul> ? inside : alone);
  EXPECT_EQ(inside, 0) << "kernels of products do not know the op";
  EXPECT_EQ(alone, 1);
}

TYPED_TEST(own_op, trains_as_its_formula_says) {
  auto plan = plan_training<TypeParam>(rises{});
  ASSERT_TRUE(bool(plan)) << plan.error().line();
  auto device = isotope_test::there(isotope::device<TypeParam>::open(cuda_test::test_options()));
  auto s = device->load(std::move(*plan));
  ASSERT_TRUE(bool(s)) << s.error().line();
  std::vector<float> w(12 * 16), x(8 * 12), goal(8 * 16);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = float(int(i * 37 % 64) - 32) / 32;  // exact in bf16
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 11 % 32) - 16) / 4;
  for (std::size_t i = 0; i < goal.size(); ++i) goal[i] = float(i % 7);
  ASSERT_TRUE(s->write(tensor_kind::parameter, 0, std::span<const float>(w)).ok());
  double expected = 0, slope_bound = 0;
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 16; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 12; ++k) sum += double(x[i * 12 + k]) * double(w[k * 16 + j]);
      sum *= 1.5;
      const double y = std::max(sum, 0.0) + std::log1p(std::exp(-std::fabs(sum))) + 1;
      expected += (y - double(goal[i * 16 + j])) * (y - double(goal[i * 16 + j])) / 128;
      slope_bound += 2 * std::fabs(y - double(goal[i * 16 + j])) * (std::fabs(y) + std::fabs(sum)) / 128;
    }
  const auto fill = [&](const char* name, const std::vector<float>& from) {
    using stored = typename TypeParam::precision::storage;
    auto to = s->template input<stored>(name);
    ASSERT_TRUE(bool(to)) << to.error().line();
    for (std::size_t i = 0; i < from.size(); ++i) (*to)[i] = stored(from[i]);
  };
  fill("x", x);
  fill("goal", goal);
  step_scalars scalars;
  scalars.learning_rate = 0.01f;
  scalars.optimizer_step = 1;
  const double first = s->run(scalars).loss;
  // Every intermediate is rounded to the format: at most 4 roundings of values within |sum| + |y|, and then that of the loss.
  const double u = TypeParam::precision::type == dtype::bf16 ? 0x1p-8 : 0x1p-20;
  EXPECT_NEAR(first, expected, 4 * u * slope_bound + 4 * u * expected);
  double last = first;
  for (int t = 2; t <= 40; ++t) {
    scalars.optimizer_step = t;
    last = s->run(scalars).loss;
  }
  EXPECT_LT(last, 0.8 * first);
}
}  // namespace own_op_test
}  // namespace isotope
