#pragma once
#include "unary.hpp"

namespace isotope {
namespace op {
struct scale : unary_elementwise {
  struct constants {
    double k = 1;
    static constexpr constants of(const attributes& a) { return {.k = a.scalar()}; }
    constexpr operator attributes() const { return attributes::of_scalar(k); }
  };
  static constexpr std::string_view name = "scale";
  static constexpr neutral_operand neutral{.number = 1, .right = true};
  static constexpr bool calculate(double x, double y, double& result) { return result = x * y, true; }
  static constexpr bool adds_up = true;
  static constexpr void gradient(pullback& g) { g.give(0, apply<scale>(place::current(), g.attr, g.dy())); }
};
struct shift : unary_elementwise {
  struct constants {
    double k = 0;
    static constexpr constants of(const attributes& a) { return {.k = a.scalar()}; }
    constexpr operator attributes() const { return attributes::of_scalar(k); }
  };
  static constexpr std::string_view name = "shift";
  static constexpr bool calculate(double x, double y, double& result) { return result = x + y, true; }
  static constexpr void gradient(pullback& g) { g.give(0, g.dy()); }
};
}  // namespace op

/// y[i] = k x[i], k rounded to the accumulation format. Any shape.
template <Machine M> constexpr tensor<M> scale(tensor<M> x, double k, place at = place::current()) {
  return apply<op::scale>(at, op::scale::constants{.k = k}, x);
}
/// y[i] = -x[i], for zeros, infinities and NaN, too. Any shape.
template <Machine M> constexpr tensor<M> neg(tensor<M> x, place at = place::current()) { return scale(x, -1.0, at); }
/// y[i] = x[i] + k, k rounded to the accumulation format; x itself if k is 0. Any shape.
template <Machine M> constexpr tensor<M> shift(tensor<M> x, double k, place at = place::current()) {
  return k == 0 ? x : apply<op::shift>(at, op::shift::constants{.k = k}, x);
}
}  // namespace isotope
