#pragma once
/// Maximum, minimum and argmax over axes.
#include "div.hpp"
#include "select.hpp"
#include "sum.hpp"

namespace isotope {
namespace op {
struct extremum : reduction {
  static constexpr void infer(shape_rule& r) {
    const std::int64_t axes = constants::of(r.attr).axes;
    for (int i = 0; i < r.dims(0).rank; ++i)
      if (((axes >> i) & 1) != 0 && !r.require(!r.dims(0).late(i), "a late axis may have no elements to choose from")) return;
    if (r.require(length(r.dims(0), axes) > 0 || axes < 0, "no elements to choose from")) reduction::infer(r);
  }
  /// dx[i] = dy / (number of elements equal to the extremum) if x[i] equals it, else 0.
  static constexpr void gradient(pullback& g) {
    const auto hit = isotope::equal(g.x(0), repeated(g, g.y()));
    const auto full = repeated(g, g.dy());
    const auto zero = isotope::fill(g.machine(), full.dims(), full.type()), one = isotope::fill(g.machine(), full.dims(), full.type(), 1.0);
    const sum::constants same{.axes = constants::of(g.attr).axes, .keep = true};
    const auto ties = apply<sum>(place::current(), same, isotope::where(hit, one, zero));
    g.give(0, isotope::where(hit, isotope::div(full, isotope::expand(ties, full.dims())), zero));
  }
};
struct max : extremum {
  static constexpr std::string_view name = "max";
};
struct min : extremum {
  static constexpr std::string_view name = "min";
};
/// The result is i32.
struct argmax {
  using constants = axis_constant;
  static constexpr std::string_view name = "argmax";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    const auto [axis] = constants::of(r.attr);
    if (!r.require(axis >= 0 && axis < x.rank, "the axis is outside the tensor") ||
        !r.require(x[int(axis)] > 0, "no elements to choose from") ||
        !r.require(!x.late(int(axis)), "a late axis may have no elements to choose from"))
      return;
    shape y;
    for (int i = 0; i < x.rank; ++i)
      if (i != axis) y.push(x.axis(i));
    r.yield(y, dtype::i32);
  }
};
}  // namespace op

/// y[...] = largest x over the axes; NaN if any is NaN, and -0 is below 0 (IEEE 754-2019, 9.6). The gradient is shared among ties.
/// @error  an axis outside the tensor, or no elements
template <Machine M>
constexpr tensor<M> max(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  return reduce<op::max>(x, over, keep, at);
}
/// y[...] = smallest x over the axes; NaN if any is NaN, and -0 is below 0 (IEEE 754-2019, 9.6). The gradient is shared among ties.
/// @error  an axis outside the tensor, or no elements
template <Machine M>
constexpr tensor<M> min(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  return reduce<op::min>(x, over, keep, at);
}
/// y[...] = index of the largest x along the axis, the first of equals; the first NaN if there is one. i32, not differentiable.
/// @error  an axis outside the tensor, or no elements along it
template <Machine M> constexpr tensor<M> argmax(tensor<M> x, int axis = -1, place at = place::current()) {
  return apply<op::argmax>(at, op::argmax::constants{.axis = axis < 0 ? axis + x.rank() : axis}, x);
}
}  // namespace isotope
