#pragma once
#include "unary.hpp"

namespace isotope {
namespace op {
/// attributes: f[0] = k.
struct scale : unary_elementwise {
  static constexpr std::string_view name = "scale";
  static constexpr void gradient(pullback& g) { g.give(0, apply<scale>(place::current(), g.attr, g.dy())); }
};
/// attributes: f[0] = k.
struct shift : unary_elementwise {
  static constexpr std::string_view name = "shift";
  static constexpr void gradient(pullback& g) { g.give(0, g.dy()); }
};
}  // namespace op

/// y[i] = k x[i], k rounded to the accumulation format. Any shape.
template <Machine M> constexpr tensor<M> scale(tensor<M> x, double k, place at = place::current()) {
  attributes a;
  a.f[0] = k;
  return apply<op::scale>(at, a, x);
}
/// y[i] = x[i] + k, k rounded to the accumulation format; x itself where k is 0. Any shape.
template <Machine M> constexpr tensor<M> shift(tensor<M> x, double k, place at = place::current()) {
  if (k == 0) return x;
  attributes a;
  a.f[0] = k;
  return apply<op::shift>(at, a, x);
}
}  // namespace isotope
