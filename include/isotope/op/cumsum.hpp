#pragma once
/// Cumulative sums along an axis.
#include "softmax.hpp"

namespace isotope {
namespace op {
struct cumsum : softmax_shape {
  struct constants {
    std::int64_t axis = 0;  // counted from the first
    bool reverse = false;   // from the last element backwards
    static constexpr constants of(const attributes& a) { return {.axis = a.i[0], .reverse = a.i[1] != 0}; }
    constexpr operator attributes() const { return {.i = {axis, reverse}}; }
  };
  static constexpr std::string_view name = "cumsum";
  /// dx[j] = sum of dy[i] over i >= j; with `reverse` over i <= j.
  static constexpr void gradient(pullback& g) {
    auto c = constants::of(g.attr);
    c.reverse = !c.reverse;
    g.give(0, apply<cumsum>(place::current(), c, g.dy()));
  }
};
}  // namespace op

/// y[i] = sum of x[j] over j <= i along the axis; with `reverse` over j >= i. Summed in accumulation format, rounded to that of x.
/// @error  an axis outside the tensor, or a tensor of integers
template <Machine M> constexpr tensor<M> cumsum(tensor<M> x, int axis = -1, bool reverse = false, place at = place::current()) {
  return apply<op::cumsum>(at, op::cumsum::constants{.axis = axis < 0 ? axis + x.rank() : axis, .reverse = reverse}, x);
}
}  // namespace isotope
