#pragma once
/// Both forms of GELU and their gradients. 0.5 (1 + tanh u) is computed as the logistic function of 2 u, and 0.5 (1 + erf z) as 0.5 erfc(-z): neither
/// cancels for negative x. At infinity they give the limits.
#include <cmath>
#include <numbers>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
/// s = 0.5 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), and ds/dx.
struct tanh_gate {
  double s, slope;
  explicit tanh_gate(double given) {
    const double x = within(given, 1e4), root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const double u = root * (x + 0.044715 * x * x * x);
    s = 1 / (1 + std::exp(-2 * u));
    slope = 2 * s * (1 / (1 + std::exp(2 * u))) * root * (1 + 3 * 0.044715 * x * x);
  }
};
/// s = 0.5 (1 + erf(x / sqrt(2))), and ds/dx.
struct erf_gate {
  double s, slope;
  explicit erf_gate(double given) {
    const double x = within(given, 1e4);
    s = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    slope = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  }
};
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::gelu_tanh, P, kernels::reference> : reference::each_of<op::gelu_tanh, P> {
  static double of(double x) { return reference::above(x, -1e4) * reference::tanh_gate(x).s; }
};
template <class P> struct kernel<op::gelu_tanh_grad, P, kernels::reference> : reference::each_of<op::gelu_tanh_grad, P> {
  static double of(double x, double dy) {
    const reference::tanh_gate gate(x);
    return dy * (gate.s + reference::within(x, 1e4) * gate.slope);
  }
};
template <class P> struct kernel<op::gelu_erf, P, kernels::reference> : reference::each_of<op::gelu_erf, P> {
  static double of(double x) { return reference::above(x, -1e4) * reference::erf_gate(x).s; }
};
template <class P> struct kernel<op::gelu_erf_grad, P, kernels::reference> : reference::each_of<op::gelu_erf_grad, P> {
  static double of(double x, double dy) {
    const reference::erf_gate gate(x);
    return dy * (gate.s + reference::within(x, 1e4) * gate.slope);
  }
};

}  // namespace isotope::cpu
