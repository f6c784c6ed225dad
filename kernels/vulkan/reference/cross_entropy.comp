#version 460
#extension GL_GOOGLE_include_directive : require
// Maxima, sums of exponentials and losses of rows of logits, one row per invocation. Bound by bytes.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"
#include "logits.glsl"

layout(constant_id = 2) const uint X = F32;

layout(push_constant, scalar) uniform push {
  uint64_t logits;   // (rows, N); the first V of each row are classes
  uint64_t targets;  // (rows) i32
  uint64_t tops;     // (rows) f32: the largest logit
  uint64_t sums;     // (rows) f32: of e^(logit - top)
  uint64_t losses;   // (2, rows) f32: the losses of rows that count, and 1 where a row counts
  uint rows, N, V;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const denominator d = denominator_of(logits, row * N, 1, V, X);
  f32_ref(tops).at[row] = d.defined ? d.top : V == 0 ? -INFINITY : NOT_A_NUMBER;
  f32_ref(sums).at[row] = d.defined ? d.total : V == 0 ? 0.0 : NOT_A_NUMBER;
  const int target = load_int(targets, row);
  const bool counted = target >= 0 && uint(target) < V;
  float loss = 0.0;
  if (counted) loss = d.defined ? (d.top - load(logits, row * N + uint(target), X)) + d.log_total : NOT_A_NUMBER;
  f32_ref(losses).at[row] = loss;
  f32_ref(losses).at[rows + row] = counted ? 1.0 : 0.0;
}
