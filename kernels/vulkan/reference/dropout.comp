#version 460
#extension GL_GOOGLE_include_directive : require
// Counter-based dropout, one element per invocation. Bound by the integer multiplications of Philox.
#include "access.glsl"
#include "math/philox.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x, y, scalars;
  uint64_t least;  // an element is kept if its random word is at least this: p 2^32 rounded up
  uint count, stream;
  float factor;    // 1 / (1 - p)
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint word = philox(scalars_ref(scalars).seed, i / 4, scalars_ref(scalars).counter, stream)[i % 4];
  store(y, i, Y, uint64_t(word) >= least ? load(x, i, X) * factor : 0.0);
}
