#version 460
#extension GL_GOOGLE_include_directive : require
// dx = dloss (exp(x - top) / sum - onehot(target)) / rows that count, 0 in rows that do not; one element per invocation. dx may overwrite the logits.
// Bound by bytes.
#include "access.glsl"
#include "math/math.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint DX = F32;

layout(push_constant, scalar) uniform push {
  uint64_t logits;   // (rows, N); the first V of each row are classes
  uint64_t targets;  // (rows) i32
  uint64_t tops;     // (rows) f32: the largest logit
  uint64_t sums;     // (rows) f32: of e^(logit - top)
  uint64_t dloss;    // () f32
  uint64_t counted;  // () f32
  uint64_t dx;       // (rows, N), zeros behind the classes
  uint rows, N, V;
};

void main() {
  const uint i = item_index();
  if (i >= rows * N) return;
  const uint row = i / N, column = i % N;
  const int target = load_int(targets, row);
  float d = 0.0;
  if (target >= 0 && uint(target) < V && column < V) {
    const float p = exp_accurate(load(logits, i, X) - f32_ref(tops).at[row]) / f32_ref(sums).at[row];
    d = f32_ref(dloss).at[0] * (p - (column == uint(target) ? 1.0 : 0.0)) / f32_ref(counted).at[0];
  }
  store(dx, i, DX, d);
}
