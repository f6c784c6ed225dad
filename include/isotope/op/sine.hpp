#pragma once
/// Sine and cosine.
#include "mul.hpp"
#include "scale.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct sin : unary_elementwise {
  static constexpr std::string_view name = "sin";
  static constexpr void gradient(pullback&);  // dx[i] = dy[i] cos(x[i])
};
struct cos : unary_elementwise {
  static constexpr std::string_view name = "cos";
  /// dx[i] = -dy[i] sin(x[i]).
  static constexpr void gradient(pullback& g) {
    g.give(0, isotope::mul(isotope::scale(g.dy(), -1.0), apply<sin>(place::current(), {}, g.x(0))));
  }
};
constexpr void sin::gradient(pullback& g) { g.give(0, isotope::mul(g.dy(), apply<cos>(place::current(), {}, g.x(0)))); }
}  // namespace op

/// y[i] = sin(x[i]), x in radians. Any shape and any x: numbers of any size are reduced by as many digits of pi as they need. NaN at
/// infinity.
template <Machine M> constexpr tensor<M> sin(tensor<M> x, place at = place::current()) { return apply<op::sin>(at, {}, x); }
/// y[i] = cos(x[i]), x in radians. Any shape and any x: numbers of any size are reduced by as many digits of pi as they need. NaN at
/// infinity.
template <Machine M> constexpr tensor<M> cos(tensor<M> x, place at = place::current()) { return apply<op::cos>(at, {}, x); }
}  // namespace isotope
