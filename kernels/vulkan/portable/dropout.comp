#version 460
#extension GL_GOOGLE_include_directive : require
// Counter-based dropout, four elements per invocation: the four words of one Philox call. Bound by bytes on large devices, else by the
// multiplications of Philox.
#include "access.glsl"
#include "rows/flat.glsl"
#include "math/philox.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const bool ALL = false;  // p = 0: nothing is dropped

layout(push_constant, scalar) uniform push {
  uint64_t x, y, scalars;  // (count)
  uint count, stream;
  uint last;               // a random word up to this one drops its element: p 2^32 rounded up, minus one
  float factor;            // 1 / (1 - p)
};

void main() {
  const uint i = item_index();
  if (4 * i >= count) return;
  const vec4 v = load_flat(x, i, count, X) * factor;
  const uvec4 words = philox(scalars_ref(scalars).seed, i, scalars_ref(scalars).counter, stream);
  store_flat(y, i, count, Y, ALL ? v : mix(vec4(0.0), v, greaterThan(words, uvec4(last))));
}
