#version 460
#extension GL_GOOGLE_include_directive : require
// The k largest elements of each row and their indices, one row per invocation: each element is inserted into a descending list if it is above the
// last one.
#include "access.glsl"

layout(constant_id = 2) const uint X = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;               // (rows, n)
  uint64_t values, places;  // (rows, k)
  uint rows, n, k;
};

// Returns a word that grows with the number; NaN is the greatest, -0 equals 0. A device may flush subnormal numbers to 0 when it compares floats.
uint rank_of(float v) {
  const uint u = floatBitsToUint(v), magnitude = u & 0x7fffffffu;
  if (is_nan(v)) return 0xffffffffu;
  return u > 0x80000000u ? 0x7fffffffu - magnitude : 0x80000000u + magnitude;
}
bool above(float a, float b) { return rank_of(a) > rank_of(b); }
float listed(uint from, uint at) { return load(x, from + u32_ref(places).at[at], X); }

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row * n, list = row * k;
  for (uint first = 0; first < n; first += 4) {  // as in logits.glsl
    const float last = first < k ? 0.0 : listed(from, list + k - 1);
    bool some = false;
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (first + j < n && (first < k || above(load(x, from + first + j, X), last))) some = true;
    if (!some) continue;
    for (uint i = first; i < min(first + 4, n); ++i) {
      const float v = load(x, from + i, X);
      if (i >= k && !above(v, listed(from, list + k - 1))) continue;
      uint at = min(i, k - 1);
      for (; at > 0 && above(v, listed(from, list + at - 1)); --at) u32_ref(places).at[list + at] = u32_ref(places).at[list + at - 1];
      u32_ref(places).at[list + at] = i;
    }
  }
  for (uint i = 0; i < k; ++i) store(values, list + i, X, listed(from, list + i));
}
