#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// dlogits = k (e^(logits - top) / sum - onehot(target)), k = dloss / counted rows; zeros in rows that do not count. May overwrite the logits. Bound
// by bytes: a workgroup takes a piece of a row, HOLD blocks per invocation. Exponentials are as in cross_entropy.comp: the error of p = e^z is below
// (3 + 3 |z|) ULP of p, at most 3 ULP of 1 in absolute terms. A row with a NaN has a NaN sum.
#include "rows/rows.glsl"
#include "math/exponential.glsl"

layout(constant_id = 5) const uint X = F32;  // format of logits and dlogits

layout(push_constant, scalar) uniform push {
  uint64_t logits;   // (rows, N); the first V of each row are classes
  uint64_t targets;  // (rows) i32
  uint64_t tops;     // (rows) f32: the largest logit
  uint64_t sums;     // (rows) f32: of e^(logit - top)
  uint64_t k;        // () f32
  uint64_t dlogits;  // (rows, N), zeros behind the classes
  uint rows, N, V;
  uint pieces;       // pieces of a row, HOLD WG blocks each
};

void main() {
  const uint row = group_index() / pieces, piece = group_index() % pieces;
  if (row >= rows) return;
  const uint begin = row * N, end = begin + N, first = begin / 4, blocks = blocks_of(begin, end);
  const uint from = piece * HOLD * WG + gl_LocalInvocationID.x;
  const uint target = uint(load_int(targets, row));
  const bool counts = target < V;
  const float top = f32_ref(tops).at[row], total = f32_ref(sums).at[row];
  const float factor = is_nan(total) ? total : f32_ref(k).at[0], share = 1.0 / total;
  vec4 v[HOLD];
  if (counts)
    [[unroll]] for (uint h = 0; h < HOLD; ++h)
      if (from + h * WG < blocks) v[h] = load4(logits, first + from + h * WG, X);
  [[unroll]] for (uint h = 0; h < HOLD; ++h) {
    const uint b = first + from + h * WG;
    if (b >= first + blocks) continue;
    vec4 d = vec4(0.0);
    if (counts) {
      d = exponential(v[h] - top, X) * share;
      const uint j = begin + target - 4 * b;
      if (j < 4) d -= mix(vec4(0.0), vec4(1.0), equal(uvec4(0, 1, 2, 3), uvec4(j)));
      d *= factor;
      if (4 * b + 4 > begin + V) d = mix(vec4(0.0), d, lessThan(4 * b + uvec4(0, 1, 2, 3), uvec4(begin + V)));
    }
    store_elements(dlogits, b, begin, end, X, d);
  }
}
