#pragma once
#include "mul.hpp"
#include "scale.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct square : unary_elementwise {
  static constexpr std::string_view name = "square";
  static constexpr void decompose(decomposition& d) { d.give(0, isotope::mul(d.x(0), d.x(0), d.at)); }
  static constexpr void gradient(pullback& g) { g.give(0, isotope::scale(isotope::mul(g.dy(), g.x(0)), 2.0)); }
};
}  // namespace op

/// y[i] = x[i]^2. Any shape; NaN in, NaN out.
template <Machine M> constexpr tensor<M> square(tensor<M> x, place at = place::current()) { return apply<op::square>(at, {}, x); }
}  // namespace isotope
