#pragma once
#include "exp.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "square.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct erf : unary_elementwise {
  static constexpr std::string_view name = "erf";
  /// dx[i] = dy[i] 2 / sqrt(pi) exp(-x[i]^2).
  static constexpr void gradient(pullback& g) {
    const auto bell = isotope::exp(isotope::scale(isotope::square(g.x(0)), -1.0));
    g.give(0, isotope::mul(g.dy(), isotope::scale(bell, 1.12837916709551257390)));
  }
};
}  // namespace op

/// y[i] = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x[i]. Any shape; NaN in, NaN out; erf(+-0) = +-0.
template <Machine M> constexpr tensor<M> erf(tensor<M> x, place at = place::current()) { return apply<op::erf>(at, {}, x); }
}  // namespace isotope
