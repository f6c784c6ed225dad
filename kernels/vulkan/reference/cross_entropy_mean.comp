#version 460
#extension GL_GOOGLE_include_directive : require
// The mean of the losses of rows that count; 0 if none does.
#include "access.glsl"
#include "math/two_float.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t totals;  // (2) f32: loss, rows that count
  uint64_t loss;    // () f32
};

void main() {
  if (item_index() != 0) return;
  const float sum = f32_ref(totals).at[0], rows = f32_ref(totals).at[1];
  f32_ref(loss).at[0] = rows == 0.0 ? 0.0 : value_of(quotient(vec2(sum, 0.0), rows));
}
