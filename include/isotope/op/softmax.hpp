#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// attributes: i[0] axis.
struct softmax_shape {
  static constexpr void infer(shape_rule& r) {
    if (r.require(r.attr.i[0] >= 0 && r.attr.i[0] < r.dims(0).rank, "the axis is outside the tensor") &&
        r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first"))
      r.yield(r.dims(0), r.type(0));
  }
};
/// Operands y, dy: dx[i] = y[i] (dy[i] - sum_j y[j] dy[j]).
struct softmax_grad : softmax_shape {
  static constexpr std::string_view name = "softmax_grad";
};
struct softmax : softmax_shape {
  static constexpr std::string_view name = "softmax";
  static constexpr void gradient(pullback& g) { g.give(0, apply<softmax_grad>(place::current(), g.attr, g.y(), g.dy())); }
};
/// Operands y, dy: dx[i] = dy[i] - exp(y[i]) sum_j dy[j].
struct log_softmax_grad : softmax_shape {
  static constexpr std::string_view name = "log_softmax_grad";
};
struct log_softmax : softmax_shape {
  static constexpr std::string_view name = "log_softmax";
  static constexpr void gradient(pullback& g) { g.give(0, apply<log_softmax_grad>(place::current(), g.attr, g.y(), g.dy())); }
};
template <class Op, Machine M> constexpr tensor<M> along(tensor<M> x, int axis, place at) {
  attributes a;
  a.i[0] = axis < 0 ? axis + x.rank() : axis;
  return apply<Op>(at, a, x);
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
