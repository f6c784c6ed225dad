#version 460
#extension GL_GOOGLE_include_directive : require
// g[i] = g[i] min(1, c / (norm + 1e-6)) in place, four elements per invocation. Bound by bytes; reads nothing where nothing is clipped.
#include "access.glsl"
#include "math/two_float.glsl"
#include "rows/flat.glsl"

layout(constant_id = 2) const uint G = F32;

layout(push_constant, scalar) uniform push {
  uint64_t g;        // (count)
  uint64_t norm;     // () f32
  uint64_t scalars;
  uint count;
};

void main() {
  const uint i = item_index();
  const float clip = scalars_ref(scalars).clip_norm, n = f32_ref(norm).at[0];
  if (4 * i >= count || !(clip > 0.0) || is_nan(n)) return;
  const float factor = value_of(quotient(vec2(clip, 0.0), n + 1e-6));
  if (factor < 1.0) store_flat(g, i, count, G, load_flat(g, i, count, G) * factor);
}
