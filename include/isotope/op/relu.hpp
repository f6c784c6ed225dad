#pragma once
#include "binary.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = x[i] > 0 ? dy[i] : 0.  Operands x, dy.
struct relu_grad : binary_elementwise {
  static constexpr std::string_view name = "relu_grad";
  using gradient_of = struct relu;
};
struct relu : unary_elementwise {
  static constexpr std::string_view name = "relu";
  static constexpr bool cheap = true;
  static constexpr void gradient(pullback& g) { g.give(0, apply<relu_grad>(place::current(), {}, g.x(0), g.dy())); }
};
}  // namespace op

/// y[i] = max(x[i], 0). Any shape; NaN in, NaN out; the gradient at 0 is 0.
/// Source: Nair & Hinton 2010.
template <Machine M> constexpr tensor<M> relu(tensor<M> x, place at = place::current()) { return apply<op::relu>(at, {}, x); }
}  // namespace isotope
