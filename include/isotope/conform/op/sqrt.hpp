#pragma once
#include "../../op/sqrt.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::sqrt> : unary_spec<op_spec<op::sqrt>> {
  static constexpr std::array boundary{0.0, -0.0, -1.0, 0x1p-149, 0x1.FEp127};
  static constexpr numeric_policy policy{.gpu_ulps = usual_gpu_ulps};  // a processor rounds it correctly
  static constexpr interval range{0.01, 20};
  static double f(double x) { return std::sqrt(x); }
  static derivative slope(double x) { return {0.5 / std::sqrt(x), 0.5 / std::sqrt(x), 0.5 / std::sqrt(x)}; }
};
}  // namespace isotope::conform
