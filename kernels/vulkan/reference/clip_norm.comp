#version 460
#extension GL_GOOGLE_include_directive : require
// g[i] = g[i] min(1, c / (norm + 1e-6)) in place; one element per invocation. Bound by bytes.
#include "access.glsl"
#include "squares.glsl"

layout(constant_id = 2) const uint G = F32;

layout(push_constant, scalar) uniform push {
  uint64_t g;        // (count)
  uint64_t squares;  // one part of squares.comp
  uint64_t scalars;
  uint count;
};

void main() {
  const uint i = item_index();
  const float clip = scalars_ref(scalars).clip_norm;
  if (i >= count || !(clip > 0.0)) return;
  const float norm = norm_of(squares, scalars_ref(scalars).gradient_scale);
  if (is_nan(norm)) return;
  const float factor = value_of(quotient(vec2(clip, 0.0), norm + 1e-6));
  if (factor < 1.0) store(g, i, G, load(g, i, G) * factor);
}
