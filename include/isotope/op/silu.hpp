#pragma once
#include "binary.hpp"
#include "div.hpp"
#include "exp.hpp"
#include "scale.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// dx[i] = dy[i] s (1 + x[i] (1 - s)), s = 1 / (1 + exp(-x[i])).  Operands x, dy.
struct silu_grad : binary_elementwise {
  static constexpr std::string_view name = "silu_grad";
  using gradient_of = struct silu;
};
struct silu : unary_elementwise {
  static constexpr std::string_view name = "silu";
  static constexpr bool cheap = true;
  static constexpr void decompose(decomposition& d) {
    d.give(0, isotope::div(d.x(0), isotope::shift(isotope::exp(isotope::scale(d.x(0), -1.0, d.at), d.at), 1.0, d.at), d.at));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<silu_grad>(place::current(), {}, g.x(0), g.dy())); }
};
}  // namespace op

/// y[i] = x[i] / (1 + exp(-x[i])). Any shape; NaN in, NaN out.
/// Source: Elfwing et al. 2017, arXiv:1702.03118.
template <Machine M> constexpr tensor<M> silu(tensor<M> x, place at = place::current()) { return apply<op::silu>(at, {}, x); }
}  // namespace isotope
