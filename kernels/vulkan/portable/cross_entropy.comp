#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// For each row its maximum, sum_c e^(logits[row, c] - top), and its loss. Bound by bytes, from one read of the logits: a team keeps a running maximum
// and a sum scaled to it, four blocks per invocation in flight. The exponentials of 16-bit logits use the driver's exp2. Its error of 3 + 2 |z| ULP
// at e^z, z <= 0, is weighted with e^z and so stays below 9 ULP of the sum, 1e-6 of it.
#include "rows/rows.glsl"
#include "math/exponential.glsl"

layout(constant_id = 5) const uint X = F32;

layout(push_constant, scalar) uniform push {
  uint64_t logits;   // (rows, N); the first V of each row are classes
  uint64_t targets;  // (rows) i32
  uint64_t tops;     // (rows) f32: the largest logit
  uint64_t sums;     // (rows) f32: of e^(logit - top)
  uint64_t losses;   // (rows) f32; 0 for rows that do not count
  uint rows, N, V;
};

const uint FLIGHT = 4;
const float LOWEST = -3.40282347e38;

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * N, end = begin + V, first = begin / 4, blocks = blocks_of(begin, end);
  float top = LOWEST, total = 0.0;
  vec4 poison = vec4(0.0);  // NaN if the row has one, which max may lose
  for (uint b = lane; b < blocks; b += FLIGHT * TEAM) {
    vec4 v[FLIGHT];
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k) {
      const uint at = first + b + k * TEAM;
      v[k] = vec4(-INFINITY);
      if (b + k * TEAM >= blocks) continue;
      v[k] = load_elements(logits, at, begin, end, X, -INFINITY);
      if (WIDE && 4 * at + 4 > end) v[k] = mix(vec4(-INFINITY), v[k], elements_inside(at, begin, end));  // rows are whole vectors, classes need not be
    }
    float most = top;
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k) {
      most = max(most, max_of(v[k]));
      poison += v[k] * 1.52587891e-5;  // 2^-16 keeps finite sums finite
    }
    total *= exponential(top - most, X);
    top = most;
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k)
      total += sum_of(exponential(v[k] - top, X));
  }
  const float all = team_max(top);
  total = team_sum(is_nan(sum_of(poison)) ? NOT_A_NUMBER : total * exponential(top - all, X));
  if (lane != 0) return;
  const float rest = log_accurate(total);
  const bool defined = total != 0.0 && !is_nan(total);  // a row of -infinity has the sum 0 and gives NaN, as the definition does
  f32_ref(tops).at[row] = defined ? all : NOT_A_NUMBER;
  f32_ref(sums).at[row] = defined ? total : NOT_A_NUMBER;
  const int target = load_int(targets, row);
  f32_ref(losses).at[row] = target >= 0 && uint(target) < V ? (all - load(logits, begin + uint(target), X)) + rest : 0.0;
}
