#pragma once
/// Comparisons and choice by condition.
#include "binary.hpp"
#include "fill.hpp"

namespace isotope {
namespace op {
struct comparison {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    shape s;
    dtype t{};
    if (mix(r, s, t)) r.yield(s, dtype::boolean);
  }
};
struct less : comparison {
  static constexpr std::string_view name = "less";
};
struct equal : comparison {
  static constexpr std::string_view name = "equal";
};
/// Operands condition (boolean), a, b.
struct select {
  static constexpr std::string_view name = "select";
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    const auto ab = broadcast(r.dims(1), r.dims(2));
    const auto all = broadcast(r.dims(0), ab.s);
    dtype t{};
    if (r.require(r.type(0) == dtype::boolean, "the condition is not boolean; compare first") &&
        r.require(ab.ok && all.ok, misfit(r.dims(0), ab.s)) &&
        r.require(promote(r.type(1), r.type(2), t) && is_floating(t), "operands have different formats; cast one"))
      r.yield(all.s, t);
  }
  static constexpr void gradient(pullback& g) {
    const auto zero = isotope::fill(g.machine(), g.dy().dims(), g.dy().type());
    if (g.wants(1)) binary_elementwise::give(g, 1, apply<select>(place::current(), {}, g.x(0), g.dy(), zero));
    if (g.wants(2)) binary_elementwise::give(g, 2, apply<select>(place::current(), {}, g.x(0), zero, g.dy()));
  }
};
}  // namespace op

/// y[i] = a[i] < b[i], a boolean; false where either is NaN. Broadcasts as in NumPy. Not differentiable.
/// @error  shapes do not broadcast; integers; formats that do not mix
template <Machine M> constexpr tensor<M> less(tensor<M> a, tensor<M> b, place at = place::current()) {
  return apply<op::less>(at, {}, a, b);
}
/// y[i] = a[i] == b[i], a boolean; false where either is NaN. Broadcasts as in NumPy. Not differentiable.
/// @error  shapes do not broadcast; integers; formats that do not mix
template <Machine M> constexpr tensor<M> equal(tensor<M> a, tensor<M> b, place at = place::current()) {
  return apply<op::equal>(at, {}, a, b);
}
/// y[i] = c[i] ? a[i] : b[i]; c boolean; all three broadcast as in NumPy.
/// @error  c is not boolean; shapes do not broadcast; a and b are integers or have formats that do not mix
template <Machine M> constexpr tensor<M> where(tensor<M> c, tensor<M> a, tensor<M> b, place at = place::current()) {
  return apply<op::select>(at, {}, c, a, b);
}
}  // namespace isotope
