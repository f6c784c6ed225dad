#pragma once
#include "div.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct rsqrt : unary_elementwise {
  static constexpr std::string_view name = "rsqrt";
  /// dx[i] = -dy[i] y[i] / (2 x[i]).
  static constexpr void gradient(pullback& g) { g.give(0, isotope::div(isotope::scale(isotope::mul(g.dy(), g.y()), -0.5), g.x(0))); }
};
}  // namespace op

/// y[i] = 1 / sqrt(x[i]), rounded once. Any shape; NaN for negative x; infinity with the sign of x at +-0.
template <Machine M> constexpr tensor<M> rsqrt(tensor<M> x, place at = place::current()) { return apply<op::rsqrt>(at, {}, x); }
}  // namespace isotope
