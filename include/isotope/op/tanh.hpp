#pragma once
#include "binary.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = dy[i] (1 - y[i]^2).  Operands y, dy.
struct tanh_grad : binary_elementwise {
  static constexpr std::string_view name = "tanh_grad";
  using gradient_of = struct tanh;
};
struct tanh : unary_elementwise {
  static constexpr std::string_view name = "tanh";
  static constexpr void gradient(pullback& g) { g.give(0, apply<tanh_grad>(place::current(), {}, g.y(), g.dy())); }
};
}  // namespace op

/// y[i] = tanh(x[i]). Any shape; NaN in, NaN out.
template <Machine M> constexpr tensor<M> tanh(tensor<M> x, place at = place::current()) { return apply<op::tanh>(at, {}, x); }
}  // namespace isotope
