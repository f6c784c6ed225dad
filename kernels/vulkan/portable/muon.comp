#version 460
#extension GL_GOOGLE_include_directive : require
// Muon's update along the orthogonalised direction, four elements per invocation, in place. Bound by bytes: 12 per element, and those of the bf16
// shadow.
#include "access.glsl"
#include "rows/flat.glsl"
#include "reference/optimizer.glsl"

layout(constant_id = 6) const uint X = F32;

layout(push_constant, scalar) uniform push {
  optimizer_operands o;  // g holds the direction
  float size;            // factor on the direction
};

void main() {
  const uint i = item_index();
  if (4 * i >= o.count || skipped(o)) return;
  const vec4 w = load_flat(o.w, i, o.count, W), x = load_flat(o.g, i, o.count, X);
  scalars_ref s = scalars_ref(o.scalars);
  const float rate = s.learning_rate * o.rate;
  const vec4 decay = mix(vec4(0.0), vec4(rate * s.weight_decay), lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(o.decaying)));
  const vec4 moved = w - decay * w - rate * size * x;
  store_flat(o.w, i, o.count, W, moved);
  if (SHADOW) store_flat(o.shadow, i, o.count, SHADOW_TYPE, moved);
}
