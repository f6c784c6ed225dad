#version 460
#extension GL_GOOGLE_include_directive : require
// Takes elements of rows by index, one element of the result per invocation. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint TYPE = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;        // (rows, N)
  uint64_t indices;  // (rows, K) i32
  uint64_t y;        // (rows, K)
  uint rows, N, K;
  uint zeros;  // 1: an index outside [0, N) gives 0, 0: NaN
};

void main() {
  const uint i = item_index();
  if (i >= rows * K) return;
  const int from = load_int(indices, i);
  const bool there = from >= 0 && uint(from) < N;
  const float outside = zeros == 1 ? 0.0 : NOT_A_NUMBER;
  store(y, i, TYPE, there ? load(x, i / K * N + uint(from), TYPE) : outside);
}
