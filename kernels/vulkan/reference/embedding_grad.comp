#version 460
#extension GL_GOOGLE_include_directive : require
// into[ids[i]] += dy[i] in ascending i: an invocation has one row of dy and one column; the first row of an id adds all rows of that id. Bound by
// reading the ids, rows^2 C / 2 times.
#include "access.glsl"

layout(constant_id = 2) const uint INTO = F32;
layout(constant_id = 3) const uint DY = F32;

layout(push_constant, scalar) uniform push {
  uint64_t into;  // (V, C)
  uint64_t dy;    // (rows, C)
  uint64_t ids;   // (rows) i32
  uint rows, V, C;
};

void main() {
  const uint i = item_index();
  if (i >= rows * C) return;
  const uint first = i / C, c = i % C;
  const int id = load_int(ids, first);
  if (id < 0 || uint(id) >= V) return;
  for (uint row = 0; row < first; ++row)
    if (load_int(ids, row) == id) return;
  const uint to = uint(id) * C + c;
  float sum = load(into, to, INTO);
  for (uint row = first; row < rows; ++row)
    if (load_int(ids, row) == id) sum = rounded(sum + load(dy, row * C + c, DY), INTO);
  store(into, to, INTO, sum);
}
