#pragma once
/// Sums of all elements up to each one, along an axis.
#include "softmax.hpp"

namespace isotope {
namespace op {
/// attributes: i[0] axis, i[1] 1: from the last element backwards.
struct cumsum : softmax_shape {
  static constexpr std::string_view name = "cumsum";
  /// dx[j] = sum of dy[i] over all i that x[j] went into: those behind it, or with i[1] those before it.
  static constexpr void gradient(pullback& g) {
    attributes a = g.attr;
    a.i[1] = a.i[1] == 0 ? 1 : 0;
    g.give(0, apply<cumsum>(place::current(), a, g.dy()));
  }
};
}  // namespace op

/// y[i] = sum of x[j] over j <= i along the axis; with `reverse` over j >= i. Summed in accumulation format, rounded to that of x.
/// @error  an axis outside the tensor, or a tensor of integers
template <Machine M> constexpr tensor<M> cumsum(tensor<M> x, int axis = -1, bool reverse = false, place at = place::current()) {
  attributes a;
  a.i = {axis < 0 ? axis + x.rank() : axis, reverse ? 1 : 0};
  return apply<op::cumsum>(at, a, x);
}
}  // namespace isotope
