#pragma once
#include "binary.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = dy[i] / (2 y[i]).  Operands y, dy.
struct sqrt_grad : binary_elementwise {
  static constexpr std::string_view name = "sqrt_grad";
  using gradient_of = struct sqrt;
};
struct sqrt : unary_elementwise {
  static constexpr std::string_view name = "sqrt";
  static constexpr void gradient(pullback& g) { g.give(0, apply<sqrt_grad>(place::current(), {}, g.y(), g.dy())); }
};
}  // namespace op

/// y[i] = sqrt(x[i]). Any shape; NaN for negative x; the gradient at 0 is infinite.
template <Machine M> constexpr tensor<M> sqrt(tensor<M> x, place at = place::current()) { return apply<op::sqrt>(at, {}, x); }
}  // namespace isotope
