#pragma once
#include "div.hpp"
#include "exp.hpp"
#include "extremum.hpp"
#include "log.hpp"
#include "sub.hpp"
#include "sum.hpp"

namespace isotope {
namespace op {
struct softmax_shape {
  using constants = axis_constant;
  static constexpr void infer(shape_rule& r) {
    const auto [axis] = constants::of(r.attr);
    if (r.require(axis >= 0 && axis < r.dims(0).rank, "the axis is outside the tensor") &&
        r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first"))
      r.yield(r.dims(0), r.type(0));
  }
};
/// Intermediate results of the decompositions: x minus its maximum, and the sum of the exponentials, along the axis.
struct shifted {
  tensor<tape> z, total;
  static constexpr shifted of(decomposition& d) {
    const reduction::constants along{.axes = std::int64_t(1) << softmax_shape::constants::of(d.attr).axis, .keep = true};
    const auto z = isotope::sub(d.x(0), apply<max>(d.at, along, d.x(0)), d.at);
    return {z, apply<sum>(d.at, along, isotope::exp(z, d.at))};
  }
};
/// Operands y, dy: dx[i] = y[i] (dy[i] - sum_j y[j] dy[j]).
struct softmax_grad : softmax_shape {
  static constexpr std::string_view name = "softmax_grad";
  using gradient_of = struct softmax;
};
struct softmax : softmax_shape {
  static constexpr std::string_view name = "softmax";
  static constexpr void decompose(decomposition& d) {
    const auto s = shifted::of(d);
    d.give(0, isotope::div(isotope::exp(s.z, d.at), s.total, d.at));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<softmax_grad>(place::current(), g.attr, g.y(), g.dy())); }
};
/// Operands y, dy: dx[i] = dy[i] - exp(y[i]) sum_j dy[j].
struct log_softmax_grad : softmax_shape {
  static constexpr std::string_view name = "log_softmax_grad";
  using gradient_of = struct log_softmax;
};
struct log_softmax : softmax_shape {
  static constexpr std::string_view name = "log_softmax";
  static constexpr void decompose(decomposition& d) {
    const auto s = shifted::of(d);
    d.give(0, isotope::sub(s.z, isotope::log(s.total, d.at), d.at));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<log_softmax_grad>(place::current(), g.attr, g.y(), g.dy())); }
};
template <class Op, Machine M> constexpr tensor<M> along(tensor<M> x, int axis, place at) {
  return apply<Op>(at, typename Op::constants{.axis = axis < 0 ? axis + x.rank() : axis}, x);
}
}  // namespace op

/// y[i] = exp(x[i] - max x) / sum_j exp(x[j] - max x) along the axis. -infinity gives 0; a row of only -infinity, or with a NaN, gives NaN.
/// @error  the axis is outside the tensor
template <Machine M> constexpr tensor<M> softmax(tensor<M> x, int axis = -1, place at = place::current()) {
  return op::along<op::softmax>(x, axis, at);
}
/// y[i] = x[i] - max x - ln sum_j exp(x[j] - max x) along the axis.
/// @error  the axis is outside the tensor
template <Machine M> constexpr tensor<M> log_softmax(tensor<M> x, int axis = -1, place at = place::current()) {
  return op::along<op::log_softmax>(x, axis, at);
}
}  // namespace isotope
