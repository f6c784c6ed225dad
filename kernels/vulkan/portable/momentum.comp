#version 460
#extension GL_GOOGLE_include_directive : require
// Muon's momentum, four elements per invocation, m in place. Bound by bytes: 16 per element.
#include "access.glsl"
#include "rows/flat.glsl"
#include "reference/optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };  // w holds u

void main() {
  const uint i = item_index();
  if (4 * i >= o.count) return;
  if (skipped(o)) {
    store_flat(o.w, i, o.count, F32, vec4(0.0));
    return;
  }
  scalars_ref s = scalars_ref(o.scalars);
  const vec4 g = gradient_factor(o) * load_flat(o.g, i, o.count, F32), m = s.momentum * load_flat(o.m, i, o.count, F32) + g;
  store_flat(o.m, i, o.count, F32, m);
  store_flat(o.w, i, o.count, F32, g + s.momentum * m);
}
