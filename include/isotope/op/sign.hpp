#pragma once
#include "mul.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// It has no gradient rule: nothing flows back through it, as its slope is 0.
struct sign : unary_elementwise {
  static constexpr std::string_view name = "sign";
};
}  // namespace op

/// y[i] = 1 above zero, -1 below, and x[i] itself for +-0 and NaN. Any shape. Its gradient is 0.
template <Machine M> constexpr tensor<M> sign(tensor<M> x, place at = place::current()) { return apply<op::sign>(at, {}, x); }
/// y[i] = |x[i]|, as x[i] times its sign. Any shape; NaN in, NaN out; the gradient at 0 is 0.
template <Machine M> constexpr tensor<M> abs(tensor<M> x, place at = place::current()) { return mul(x, sign(x, at), at); }
}  // namespace isotope
