// Ops defined outside the library are as good as its own: they differentiate, fuse, plan and train.
#include "leaky_sum.hpp"
#include "softplus.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace op_test {
namespace iso = isotope;
using user::leaky_sum;
using user::softplus;

template <class P>
using kernels = boost::mp11::mp_list<iso::cpu::kernel<user::softplus_op, P, iso::kernels::reference>,
                                     iso::cpu::kernel<user::leaky_sum_op, P, iso::kernels::reference>>;
template <class P> using here = iso::target<iso::backend::cpu, P, iso::kernels::reference, kernels<P>>;

/// Steps of positive size, of which half is left at the next one, against a given curve.
struct curve_loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto y = leaky_sum(softplus(s.param("w", {3, 5}, iso::init::normal(1)) * 1.5));  // (3, 5)
    return mean(square(y - s.input("curve", {3, 5})));
  }
};
const std::vector<double> curve{0.5, 1, 1.5, 2, 2.5, 1, 2, 3, 4, 5, 0.1, 0.3, 0.6, 1, 1.5};

double loss_at(const std::vector<double>& w) {
  iso::cpu::eager<here<iso::precision::f64>> m;
  m.set("w", std::span<const double>(w));
  m.set("curve", std::span<const double>(curve));
  return m.read(curve_loss{}(iso::scope<decltype(m)>{&m, {}}))[0];
}

TEST(user_op, gradient_is_the_slope) {
  std::vector<double> w;
  for (int i = 0; i < 15; ++i) w.push_back(0.3 * i - 2);
  iso::cpu::eager<here<iso::precision::f64>> m;
  m.set("w", std::span<const double>(w));
  m.set("curve", std::span<const double>(curve));
  const auto loss = curve_loss{}(iso::scope<decltype(m)>{&m, {}});
  iso::differentiate(m, loss.id);
  ASSERT_TRUE(m.ok()) << m.g.error.view();
  ASSERT_GE(m.g.params.at(0).grad, 0);
  const auto dw = m.read(m.g.params[0].grad);
  ASSERT_EQ(dw.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto moved = [&](double h) {
      auto x = w;
      x[i] += h;
      return loss_at(x);
    };
    // Four points: with h = 2^-10 truncation h^4 f^(5) / 30 stays below 1e-12 and rounding 2 u |f| / h below 1e-12, for f below 50.
    const double h = 0x1p-10, slope = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
    EXPECT_LE(std::fabs(dw[i] - slope), 1e-6 * std::fabs(slope) + 1e-10) << i;
  }
}

TEST(user_op, plan_equals_eager_bit_for_bit) {
  std::vector<float> w(15), target(curve.begin(), curve.end());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.25f * float(i) - 2;
  iso::cpu::eager<here<iso::precision::f32>> m;
  m.set("w", std::span<const float>(w));
  m.set("curve", std::span<const float>(target));
  const double expected = m.read(curve_loss{}(iso::scope<decltype(m)>{&m, {}}))[0];

  using step = iso::training<curve_loss, here<iso::precision::f32>>;
  auto device = iso::device<here<iso::precision::f32>>::open({.threads = 1});
  ASSERT_TRUE(device);
  auto session = device->load<step>();
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->write(iso::tensor_kind::parameter, 0, w));
  auto input = session->input<float>("curve");
  ASSERT_TRUE(input);
  std::copy(target.begin(), target.end(), input->begin());
  EXPECT_EQ(session->run({}).loss, expected);
}

TEST(user_op, trains) {
  using step = iso::training<curve_loss, here<iso::precision::f32>>;
  bool fused = false;  // the element-wise op is an instruction of a larger body
  for (const auto& m : step::view().steps)
    for (int k = 0; k < m.body_size && m.body_size > 1; ++k)
      fused = fused || step::view().micro_ops[std::size_t(m.body + k)].op == &iso::info<user::softplus_op>;
  EXPECT_TRUE(fused);
  auto device = iso::device<here<iso::precision::f32>>::open({.threads = 1});
  ASSERT_TRUE(device);
  auto session = device->load<step>();
  ASSERT_TRUE(session);
  session->initialize(1);
  auto input = session->input<float>("curve");
  ASSERT_TRUE(input);
  std::copy(curve.begin(), curve.end(), input->begin());
  iso::step_scalars scalars;
  scalars.learning_rate = 0.05f;
  double first = 0, last = 0;
  for (int i = 1; i <= 300; ++i) {
    scalars.optimizer_step = i;
    last = session->run(scalars).loss;
    if (i == 1) first = last;
  }
  EXPECT_GT(first, 0.1);
  EXPECT_LT(last, 0.01);  // the curve nowhere falls by half, so positive steps can follow it exactly: what is left is the optimiser's
}
}  // namespace op_test
