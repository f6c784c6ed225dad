#version 460
#extension GL_GOOGLE_include_directive : require
// g[i] = min(max(g[i], -c), c) in place, NaN kept, four elements per invocation. Bound by bytes; reads nothing where nothing is clipped.
#include "access.glsl"
#include "rows/flat.glsl"

layout(constant_id = 2) const uint G = F32;

layout(push_constant, scalar) uniform push {
  uint64_t g;  // (count)
  uint64_t scalars;
  uint count;
};

void main() {
  const uint i = item_index();
  const float clip = scalars_ref(scalars).clip_value;
  if (4 * i >= count || !(clip > 0.0)) return;
  const vec4 v = load_flat(g, i, count, G), c = vec4(clip / scalars_ref(scalars).gradient_scale);
  vec4 x = mix(mix(v, c, greaterThan(v, c)), -c, lessThan(v, -c));
  [[unroll]] for (uint q = 0; q < 4; ++q)
    if (is_nan(v[q])) x[q] = v[q];  // drivers turn the comparisons into min and max, which lose NaN
  store_flat(g, i, count, G, x);
}
