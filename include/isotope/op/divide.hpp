#pragma once
/// The rule of element-wise ops for operands that are divided between devices.
#include "fill.hpp"

namespace isotope::op {

/// Makes operand k, which is whole, one that is divided, if every element of it is the same constant.
constexpr bool divide_constant(sharding& s, int k, const axis_split& along) {
  tape& t = s.machine();
  const value& v = t.describe(s.in[std::size_t(k)]);
  if (v.base >= 0 || v.producer < 0 || !t.g.nodes[std::size_t(v.producer)].op->constant) return false;
  shape dims = v.dims;
  dims.set(along.axis, along.local(s.parts()));
  const double x = t.g.nodes[std::size_t(v.producer)].attr.scalar();
  s.replace_operand(k, isotope::fill(t, dims, v.type, x).id, along);
  return true;
}

/// Element-wise ops: every operand is divided along the same axis, counted from the last one, in the same pieces, or is broadcast along that axis.
constexpr void shard_elementwise(sharding& s) {
  int behind = 0, rank = 0;  // axes from the divided one to the last; the rank of the result
  axis_split along;
  for (int k = 0; k < s.inputs(); ++k) {
    if (s.dims(k).rank > rank) rank = s.dims(k).rank;
    if (!s.divided(k)) continue;
    const int from_end = s.dims(k).rank - s.along(k).axis;
    if (!s.require(!along.divides() || (from_end == behind && along.same_pieces(s.along(k))), "operands are divided in different ways"))
      return;
    along = s.along(k);
    behind = from_end;
  }
  if (!along.divides()) return;
  for (int k = 0; k < s.inputs(); ++k) {
    const int axis = s.dims(k).rank - behind;
    if (s.divided(k) || axis < 0 || s.dims(k)[axis] == 1) continue;
    if (!s.require(divide_constant(s, k, along.moved_to(axis)), "one operand is divided and the other is whole")) return;
  }
  s.yield_divided(0, along.moved_to(rank - behind));
}

}  // namespace isotope::op
