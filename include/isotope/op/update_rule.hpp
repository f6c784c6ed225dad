#pragma once
/// The shape rule that the updates of optimisers share.
#include "../core/tape.hpp"

namespace isotope::op {

/// Whether an update has its operands: `tensors` of N elements, [shadow (N)], [packed], g (N), norm, loss; attributes as adamw.
constexpr bool equal_counts(shape_rule& r, int tensors) {
  const bool shadow = r.attr.i[1] != 0, packed = r.attr.i[3] != 0;
  const int g = tensors + int(shadow) + int(packed);
  if (!r.require(r.inputs() == g + 3,
                 "an update takes its tensors, a shadow and a packed copy where its attributes say so, the gradient, norm and loss"))
    return false;
  const auto N = r.dims(0).count();
  for (int k = 1; k < tensors + int(shadow); ++k)
    if (!r.require(r.dims(k).count() == N, "tensors of an update differ in size")) return false;
  return r.require(r.dims(g).count() == N, "the gradient has another size than the weights") &&
         r.require(r.attr.i[0] >= 0 && r.attr.i[0] <= N, "more elements decay than there are");
}
constexpr void update_in_place(shape_rule& r) {
  for (int k = 0; k < r.inputs() - 3; ++k) r.yield(r.dims(k), r.type(k));
}

}  // namespace isotope::op
