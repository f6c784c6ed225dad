#version 460
#extension GL_GOOGLE_include_directive : require
// delta = rowsum(dy y), which the derivative of softmax subtracts in each row. Bound by bytes: eight invocations per row, four elements at a time.
#include "access.glsl"
#include "attention/operands.glsl"
#include "attention/pieces.glsl"

const uint ACROSS = 8, DOWN = WG / ACROSS;  // invocations per row, rows per workgroup
shared float partial[WG];

void main() {
  const uint t = gl_LocalInvocationID.x, row = group_index() * DOWN + t / ACROSS;  // row of (B, H, S)
  float sum = 0.0;
  if (row < B * HEADS * S) {
    const uint head = row / S, s = row % S, b = head / HEADS, h = head % HEADS;
    const uint64_t result = element(y, b * Y_BATCH + h * D, Y_TYPE), gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE);
    for (uint c = t % ACROSS * 4; c < D; c += 4 * ACROSS) {
      const vec4 x = piece(result, Y_TYPE, Y_ROW, s, S, c) * piece(gradient, DY_TYPE, DY_ROW, s, S, c);
      sum += (x.x + x.y) + (x.z + x.w);
    }
  }
  partial[t] = sum;
  barrier();
  if (t % ACROSS != 0 || row >= B * HEADS * S) return;
  for (uint i = 1; i < ACROSS; ++i) sum += partial[t + i];
  f32_ref(delta).at[row] = sum;
}
