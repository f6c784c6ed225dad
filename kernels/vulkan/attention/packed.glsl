// Attention of packed sequences by the shaders that attend to whole ones: each workgroup finds its sequence, whose rows are then its S queries and T keys.
#include "rows/packed_rows.glsl"

// The rows of a workgroup: from query q0 of head `head` of the sequence on whose first row is `first`. Heads of the same rows are neighbours.
struct packed_queries {
  bool there;
  uint first, head, q0;
};
// Sets S and T. Rows of no sequence become zeros here, and are not there afterwards.
packed_queries own_packed_queries(uint owned) {
  const uint head = group_index() % HEADS;
  const packed_place at = place_of_packed(mask, sequences, rows, owned, group_index() / HEADS);
  if (at.first + at.own >= at.end) return packed_queries(false, 0, 0, 0);
  if (at.outside) {
    const uint row = at.first + at.own, count = min(owned, at.end - row);
    for (uint i = gl_LocalInvocationID.x; i < count * D; i += WG) store(y, (row + i / D) * Y_ROW + head * D + i % D, Y_TYPE, 0.0);
    return packed_queries(false, 0, 0, 0);
  }
  S = T = at.end - at.first;
  return packed_queries(true, at.first, head, at.own);
}
