#version 460
#extension GL_GOOGLE_include_directive : require
// The k largest elements of each row and where they stand, one invocation a row: a list in falling order into which every element is put, if it is
// above the last one.
#include "access.glsl"

layout(constant_id = 2) const uint X = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;               // (rows, n)
  uint64_t values, places;  // (rows, k)
  uint rows, n, k;
};

// By bits, and NaN above all.
bool above(float a, float b) { return !is_nan(b) && (is_nan(a) || a > b); }

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row * n, list = row * k;
  for (uint i = 0; i < n; ++i) {
    const float v = load(x, from + i, X);
    uint at = min(i, k);
    while (at > 0 && above(v, load(x, from + u32_ref(places).at[list + at - 1], X))) {
      --at;
      if (at + 1 < k) u32_ref(places).at[list + at + 1] = u32_ref(places).at[list + at];
    }
    if (at < k) u32_ref(places).at[list + at] = i;
  }
  for (uint i = 0; i < k; ++i) store(values, list + i, X, load(x, from + u32_ref(places).at[list + i], X));
}
