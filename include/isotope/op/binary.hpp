#pragma once
/// The shape rule of element-wise ops of two operands: NumPy broadcasting, mixed formats widen.
#include "sum.hpp"

namespace isotope::op {

/// The format of the result of two operands: that of both if it is the same, or f32 for bf16 with f32. False if the formats do not mix.
constexpr bool promote(dtype a, dtype b, dtype& r) {
  r = a;
  if (a == b) return true;
  const auto half = [](dtype t) { return t == dtype::bf16 || t == dtype::f16; };
  if (a == dtype::f32 && half(b)) return true;
  r = b;
  return b == dtype::f32 && half(a);
}

/// The error of shapes that do not broadcast.
constexpr std::string_view misfit(const shape& a, const shape& b) {
  return a.has_scalar() || b.has_scalar() ? "shapes do not broadcast; a late size fits the same scalar_dim or 1"
                                          : "shapes do not broadcast";
}
/// Whether two operands broadcast, to s, and their formats mix, to t.
constexpr bool mix(shape_rule& r, shape& s, dtype& t) {
  const auto b = broadcast(r.dims(0), r.dims(1));
  s = b.s;
  return r.require(b.ok, misfit(r.dims(0), r.dims(1))) &&
         r.require(promote(r.type(0), r.type(1), t) && is_floating(t), "operands have different formats; cast one");
}

struct binary_elementwise {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    shape s;
    dtype t{};
    if (mix(r, s, t)) r.yield(s, t);
  }
  /// Gives the gradient of operand k: g summed over the axes along which the operand was broadcast.
  static constexpr void give(pullback& p, int k, tensor<tape> g) { p.give(k, sum_to(g, p.x(k).dims(), p.grad_type(k))); }
};

}  // namespace isotope::op
