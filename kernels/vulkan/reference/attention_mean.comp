#version 460
#extension GL_GOOGLE_include_directive : require
// The mean of dp under each query's probabilities, sum_d y dy, stored beside its log-sum; one query of a head per invocation. Bound by bytes.
#include "access.glsl"
#include "attention.glsl"

layout(constant_id = 16) const uint Y = F32;
layout(constant_id = 17) const uint DY = F32;

layout(push_constant, scalar) uniform push {
  uint64_t y, dy;  // (B, S, H D)
  uint64_t lse;    // (B, H, S) f32
  uint64_t means;  // (B, H, S, 2) f32: log-sum, mean
  rows y_at, dy_at, lse_at;
  uint B, S;
};

void main() {
  const uint i = item_index();
  if (i >= B * H * S) return;
  const uint s = i % S, h = i / S % H, b = i / (S * H);
  f32_ref(means).at[2 * i] = f32_ref(lse).at[b * lse_at.batch + h * lse_at.row + s];
  f32_ref(means).at[2 * i + 1] = dot_of(y, at(y_at, b, s, h), Y, dy, at(dy_at, b, s, h), DY);
}
