#version 460
#extension GL_GOOGLE_include_directive : require
// g[i] = min(max(g[i], -c), c) in place, NaN kept; one element per invocation. Bound by bytes.
#include "access.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint G = F32;

layout(push_constant, scalar) uniform push {
  uint64_t g;  // (count)
  uint64_t scalars;
  uint count;
};

void main() {
  const uint i = item_index();
  if (i >= count || !(scalars_ref(scalars).clip_value > 0.0)) return;
  const float c = value_of(quotient(vec2(scalars_ref(scalars).clip_value, 0.0), scalars_ref(scalars).gradient_scale));
  const float x = load(g, i, G);
  if (is_nan(x)) return;
  store(g, i, G, x < -c ? -c : x > c ? c : x);
}
