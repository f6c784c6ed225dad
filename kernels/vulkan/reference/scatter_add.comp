#version 460
#extension GL_GOOGLE_include_directive : require
// Adds updates to elements of rows by index: one element of the result per invocation, which adds the updates of its index in ascending order. Bound by reading
// the indices, N times.
#include "access.glsl"

layout(constant_id = 2) const uint TYPE = F32;
layout(constant_id = 3) const uint UPDATES = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;        // (rows, N)
  uint64_t updates;  // (rows, K)
  uint64_t indices;  // (rows, K) i32
  uint64_t y;        // (rows, N)
  uint rows, N, K;
};

void main() {
  const uint i = item_index();
  if (i >= rows * N) return;
  const uint row = i / N;
  const int n = int(i % N);
  float sum = load(x, i, TYPE);
  for (uint k = row * K; k < (row + 1) * K; ++k)
    if (load_int(indices, k) == n) sum += load(updates, k, UPDATES);
  store(y, i, TYPE, sum);
}
