#version 460
#extension GL_GOOGLE_include_directive : require
// Muon's momentum, one element per invocation, m in place. Bound by bytes.
#include "access.glsl"
#include "optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };  // w holds u

void main() {
  const uint i = item_index();
  if (i >= o.count) return;
  if (skipped(o)) {
    f32_ref(o.w).at[i] = 0.0;
    return;
  }
  scalars_ref s = scalars_ref(o.scalars);
  const float g = gradient_factor(o) * f32_ref(o.g).at[i];
  const float m = s.momentum * f32_ref(o.m).at[i] + g;
  f32_ref(o.m).at[i] = m;
  f32_ref(o.w).at[i] = g + s.momentum * m;
}
