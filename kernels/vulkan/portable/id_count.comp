#version 460
#extension GL_GOOGLE_include_directive : require
// Counts how often each digit occurs in each block of WG ITEMS pairs. The counters are integers, so their order does not matter.
#include "access.glsl"
#include "rows/id_pairs.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t from;    // (n) ids, or pairs
  uint64_t counts;  // (blocks, DIGITS)
  uint n, V, shift;
};

shared uint count[DIGITS];

void main() {
  const uint lane = gl_LocalInvocationID.x;
  if (lane < DIGITS) count[lane] = 0;
  barrier();
  for (uint k = 0; k < ITEMS; ++k) {
    const uint i = (gl_WorkGroupID.x * ITEMS + k) * WG + lane;
    if (i < n) atomicAdd(count[digit_of(pair_at(from, i, V), shift)], 1);
  }
  barrier();
  if (lane < DIGITS) u32_ref(counts).at[gl_WorkGroupID.x * DIGITS + lane] = count[lane];
}
