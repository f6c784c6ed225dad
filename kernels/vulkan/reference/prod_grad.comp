#version 460
#extension GL_GOOGLE_include_directive : require
// Gradient of the products of rows, one row per invocation: dy times the product of the elements before an element and of those behind it.
#include "access.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint DY = F32;
layout(constant_id = 4) const uint DX = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x, dy, dx;  // (rows, n), (rows), (rows, n)
  uint64_t before;     // (rows, n) f32: products of the elements before each one
  uint rows, n;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row * n;
  float total = 1.0;
  for (uint first = 0; first < n; first += 4)  // four per iteration, as in logits.glsl
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const uint at = from + first + j;
        f32_ref(before).at[at] = total;
        total *= load(x, at, X);
      }
    }
  const float d = load(dy, row, DY);
  total = 1.0;
  for (uint first = 0; first < n; first += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const uint at = from + n - 1 - (first + j);
        store(dx, at, DX, d * (f32_ref(before).at[at] * total));
        total *= load(x, at, X);
      }
    }
}
