#pragma once
#include "binary.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = dy[i] y[i] (1 - y[i]).  Operands y, dy.
struct sigmoid_grad : binary_elementwise {
  static constexpr std::string_view name = "sigmoid_grad";
};
struct sigmoid : unary_elementwise {
  static constexpr std::string_view name = "sigmoid";
  static constexpr void gradient(pullback& g) { g.give(0, apply<sigmoid_grad>(place::current(), {}, g.y(), g.dy())); }
};
}  // namespace op

/// y[i] = 1 / (1 + exp(-x[i])). Any shape; NaN in, NaN out.
template <Machine M> constexpr tensor<M> sigmoid(tensor<M> x, place at = place::current()) { return apply<op::sigmoid>(at, {}, x); }
}  // namespace isotope
