#pragma once
#include "binary.hpp"

namespace isotope {
namespace op {
struct add : binary_elementwise {
  static constexpr std::string_view name = "add";
  static constexpr neutral_operand neutral{.number = -0.0, .left = true, .right = true};  // 0 is not: of -0 it makes 0
  static constexpr bool calculate(double x, double y, double& result) { return result = x + y, true; }
  static constexpr bool adds_up = true;
  static constexpr void gradient(pullback& g) {
    if (g.wants(0)) give(g, 0, g.dy());
    if (g.wants(1)) give(g, 1, g.dy());
  }
};
}  // namespace op

/// y[i] = a[i] + b[i]; a and b broadcast as in NumPy, aligned at the last axis.
/// @error  sizes differ and neither is 1; formats that do not mix (bf16 with f32 gives f32)
template <Machine M> constexpr tensor<M> add(tensor<M> a, tensor<M> b, place at = place::current()) { return apply<op::add>(at, {}, a, b); }
}  // namespace isotope
