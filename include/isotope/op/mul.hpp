#pragma once
#include "binary.hpp"

namespace isotope {
namespace op {
struct mul : binary_elementwise {
  static constexpr std::string_view name = "mul";
  static constexpr bool cheap = true;
  static constexpr neutral_operand neutral{.number = 1, .left = true, .right = true};
  static constexpr bool calculate(double x, double y, double& result) { return result = x * y, true; }
  static constexpr void gradient(pullback& g) {
    if (g.wants(0)) give(g, 0, apply<mul>(place::current(), {}, g.dy(), g.x(1)));
    if (g.wants(1)) give(g, 1, apply<mul>(place::current(), {}, g.dy(), g.x(0)));
  }
};
}  // namespace op

/// y[i] = a[i] b[i]; a and b broadcast as in NumPy, aligned at the last axis.
/// @error  sizes differ and neither is 1; formats that do not mix (bf16 with f32 gives f32)
template <Machine M> constexpr tensor<M> mul(tensor<M> a, tensor<M> b, place at = place::current()) { return apply<op::mul>(at, {}, a, b); }
}  // namespace isotope
