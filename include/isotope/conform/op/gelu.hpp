#pragma once
#include "../../op/gelu.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::gelu_tanh> : unary_spec<op_spec<op::gelu_tanh>> {
  static constexpr std::array boundary{0.0, -0.7525, -5.0, -10.0, 10.0};
  static constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
  /// 0.5 (1 + tanh t) = 1 / (1 + exp(-2 t)), which keeps its digits where tanh is close to -1
  static double f(double x) {
    if (std::isinf(x)) return x > 0 ? x : 0;
    return x / (1 + std::exp(-2 * root * (x + 0.044715 * x * x * x)));
  }
  static derivative slope(double x) {
    const double t = root * (x + 0.044715 * x * x * x), inner = root * (1 + 3 * 0.044715 * x * x);
    const double s = 1 / (1 + std::exp(-2 * t)), r = 1 / (1 + std::exp(2 * t));
    return {s + 2 * x * s * r * inner, 1 + std::fabs(2 * x * inner * s * r) * (2 + std::fabs(t))};
  }
};
template <> struct op_spec<op::gelu_erf> : unary_spec<op_spec<op::gelu_erf>> {
  static constexpr std::array boundary{0.0, -0.7518, -5.5, -14.0, 10.0};
  static double f(double x) {
    if (std::isinf(x)) return x > 0 ? x : 0;
    return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
  }
  static derivative slope(double x) {
    const double density = std::exp(-0.5 * x * x) * 0.39894228040143267794;
    return {0.5 * std::erfc(-x * 0.70710678118654752440) + x * density, 1 + std::fabs(x) * density * (2 + x * x)};
  }
};
}  // namespace isotope::conform
