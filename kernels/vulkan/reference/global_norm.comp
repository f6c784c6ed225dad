#version 460
#extension GL_GOOGLE_include_directive : require
// Computes the norm from its sum of squares.
#include "access.glsl"
#include "squares.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t squares;  // one part of squares.comp
  uint64_t norm;     // () f32
  uint64_t scalars;
};

void main() {
  if (item_index() == 0) f32_ref(norm).at[0] = norm_of(squares, scalars_ref(scalars).gradient_scale);
}
