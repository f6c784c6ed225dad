#pragma once
/// The shape rule of element-wise ops of two operands: NumPy broadcasting, mixed formats widen.
#include "sum.hpp"

namespace isotope::op {

/// The format of a mixed expression: equal formats keep theirs, bf16 with f32 gives f32.
constexpr bool promote(dtype a, dtype b, dtype& r) {
  r = a;
  if (a == b) return true;
  const auto half = [](dtype t) { return t == dtype::bf16 || t == dtype::f16; };
  if (a == dtype::f32 && half(b)) return true;
  r = b;
  return b == dtype::f32 && half(a);
}

/// What to say of shapes that do not broadcast.
constexpr std::string_view misfit(const shape& a, const shape& b) {
  return a.has_scalar() || b.has_scalar() ? "shapes do not broadcast; a late size fits the same scalar_dim or 1"
                                          : "shapes do not broadcast";
}

struct binary_elementwise {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    const auto b = broadcast(r.dims(0), r.dims(1));
    dtype t{};
    if (r.require(b.ok, misfit(r.dims(0), r.dims(1))) &&
        r.require(promote(r.type(0), r.type(1), t) && is_floating(t), "operands have different formats; cast one"))
      r.yield(b.s, t);
  }
  /// The gradient of operand k: g summed over the axes along which the operand was repeated.
  static constexpr void give(pullback& p, int k, tensor<tape> g) { p.give(k, sum_to(g, p.x(k).dims(), p.grad_type(k))); }
};

}  // namespace isotope::op
