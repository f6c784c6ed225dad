#pragma once
/// The larger and the smaller of two tensors, element by element; max and min of extremum.hpp reduce one tensor.
#include "fill.hpp"
#include "scale.hpp"
#include "select.hpp"

namespace isotope {
namespace op {
struct larger_or_smaller : binary_elementwise {
  /// Gives operand k, which is chosen where least < most, dy there, half of dy where both are equal, and 0 elsewhere.
  static constexpr void share(pullback& g, int k, tensor<tape> least, tensor<tape> most) {
    const auto zero = isotope::fill(g.machine(), {}, g.dy().type());
    const auto tie = isotope::where(isotope::equal(least, most), isotope::scale(g.dy(), 0.5), zero);
    give(g, k, isotope::where(isotope::less(least, most), g.dy(), tie));
  }
};
struct maximum : larger_or_smaller {
  static constexpr std::string_view name = "maximum";
  static constexpr void gradient(pullback& g) {
    if (g.wants(0)) share(g, 0, g.x(1), g.x(0));
    if (g.wants(1)) share(g, 1, g.x(0), g.x(1));
  }
};
struct minimum : larger_or_smaller {
  static constexpr std::string_view name = "minimum";
  static constexpr void gradient(pullback& g) {
    if (g.wants(0)) share(g, 0, g.x(0), g.x(1));
    if (g.wants(1)) share(g, 1, g.x(1), g.x(0));
  }
};
}  // namespace op

/// y[i] = the larger of a[i] and b[i]; NaN if either is NaN, and -0 is below 0 (IEEE 754-2019, 9.6). Broadcasts as in NumPy. Equal
/// operands share the gradient; it is 0 where y is NaN.
/// @error  shapes do not broadcast; integers; formats that do not mix
template <Machine M> constexpr tensor<M> maximum(tensor<M> a, tensor<M> b, place at = place::current()) {
  return apply<op::maximum>(at, {}, a, b);
}
/// y[i] = the smaller of a[i] and b[i]; NaN if either is NaN, and -0 is below 0 (IEEE 754-2019, 9.6). Broadcasts as in NumPy. Equal
/// operands share the gradient; it is 0 where y is NaN.
/// @error  shapes do not broadcast; integers; formats that do not mix
template <Machine M> constexpr tensor<M> minimum(tensor<M> a, tensor<M> b, place at = place::current()) {
  return apply<op::minimum>(at, {}, a, b);
}
}  // namespace isotope
