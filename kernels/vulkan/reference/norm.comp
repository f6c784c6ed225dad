#version 460
#extension GL_GOOGLE_include_directive : require
// Layer and root-mean-square normalisation, one row per invocation: the mean, then deviations from it, then the result. A row is read before it is
// written, so in place is safe. Bound by bytes.
#include "access.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint WEIGHT = F32;
layout(constant_id = 4) const uint BIAS = F32;
layout(constant_id = 5) const uint Y = F32;
layout(constant_id = 6) const bool CENTERED = true;  // subtracts the mean and adds the bias: layer_norm

layout(push_constant, scalar) uniform push {
  uint64_t x;             // (rows, C)
  uint64_t weight, bias;  // (C)
  uint64_t y;             // (rows, C)
  uint64_t means, rstds;  // (rows) f32
  uint rows, C;
  float epsilon;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row * C;
  vec2 mean = vec2(0.0);
  if (CENTERED) {
    for (uint c = 0; c < C; ++c) mean = plus(mean, load(x, from + c, X));
    mean = quotient(mean, float(C));
  }
  vec2 squares = vec2(0.0);
  for (uint c = 0; c < C; ++c) {
    const float d = (load(x, from + c, X) - mean.x) - mean.y;
    squares = plus(squares, d * d);
  }
  const float rstd = inverse_root(value_of(quotient(squares, float(C))) + epsilon);
  for (uint c = 0; c < C; ++c) {
    const float h = ((load(x, from + c, X) - mean.x) - mean.y) * rstd;
    store(y, from + c, Y, h * load(weight, c, WEIGHT) + (CENTERED ? load(bias, c, BIAS) : 0.0));
  }
  if (CENTERED) f32_ref(means).at[row] = value_of(mean);
  f32_ref(rstds).at[row] = rstd;
}
