#pragma once
#include "binary.hpp"
#include "div.hpp"
#include "exp.hpp"
#include "scale.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = dy[i] y[i] (1 - y[i]).  Operands y, dy.
struct sigmoid_grad : binary_elementwise {
  static constexpr std::string_view name = "sigmoid_grad";
  using gradient_of = struct sigmoid;
};
struct sigmoid : unary_elementwise {
  static constexpr std::string_view name = "sigmoid";
  static constexpr void decompose(decomposition& d) {
    const auto one = isotope::shift(isotope::scale(d.x(0), 0.0, d.at), 1.0, d.at);
    d.give(0, isotope::div(one, isotope::shift(isotope::exp(isotope::scale(d.x(0), -1.0, d.at), d.at), 1.0, d.at), d.at));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<sigmoid_grad>(place::current(), {}, g.y(), g.dy())); }
};
}  // namespace op

/// y[i] = 1 / (1 + exp(-x[i])). Any shape; NaN in, NaN out.
template <Machine M> constexpr tensor<M> sigmoid(tensor<M> x, place at = place::current()) { return apply<op::sigmoid>(at, {}, x); }
}  // namespace isotope
