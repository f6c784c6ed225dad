#version 460
#extension GL_GOOGLE_include_directive : require
// Copies 16-byte blocks: the last dispatch of a step copies the outputs to host-visible memory, so that a step needs no copy command.
#include "access.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t from, to;
  uint blocks;
};

void main() {
  const uint i = item_index();
  if (i < blocks) u32x4_ref(to).at[i] = u32x4_ref(from).at[i];
}
