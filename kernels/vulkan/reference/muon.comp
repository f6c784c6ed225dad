#version 460
#extension GL_GOOGLE_include_directive : require
// Muon's update along the orthogonalised direction, one element per invocation, in place. Bound by bytes.
#include "access.glsl"
#include "optimizer.glsl"

layout(constant_id = 6) const uint X = F32;

layout(push_constant, scalar) uniform push {
  optimizer_operands o;  // g holds the direction
  float size;            // factor on the direction
};

void main() {
  const uint i = item_index();
  if (i >= o.count || skipped(o)) return;
  scalars_ref s = scalars_ref(o.scalars);
  const float rate = s.learning_rate * o.rate;
  const float w = load(o.w, i, W), kept = i < o.decaying ? w - rate * s.weight_decay * w : w;
  const float moved = kept - rate * size * load(o.g, i, X);
  store(o.w, i, W, moved);
  if (SHADOW) store(o.shadow, i, SHADOW_TYPE, moved);
}
