#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Layer normalisation (CENTERED) and root-mean-square normalisation. Bound by bytes: a team reads its row once and keeps it in registers, so that the
// variance, a second pass over deviations, needs no second read. Weight and bias come from the caches.
#include "rows/rows.glsl"

layout(constant_id = 5) const uint C = 64;
layout(constant_id = 6) const bool CENTERED = true;
layout(constant_id = 7) const uint X = F32;       // format of x and y
layout(constant_id = 8) const uint WEIGHT = F32;  // format of weight and bias

layout(push_constant, scalar) uniform push {
  uint64_t x;             // (rows, C)
  uint64_t weight, bias;  // (C); no bias if not CENTERED
  uint64_t y;             // (rows, C)
  uint64_t means, rstds;  // (rows) f32; no means if not CENTERED
  uint rows;
  float epsilon;
};

const uint BLOCKS = (C + 3) / 4;

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index(), begin = row * C;
  if (row >= rows) return;
  vec4 held[HOLD];
  [[unroll]] for (uint k = 0; k < HOLD; ++k) {
    const uint b = k * TEAM + lane;
    held[k] = b < BLOCKS ? load_columns(x, begin, b, C, X) : vec4(0.0);
  }
  float mean = 0.0;
  if (CENTERED) {
    [[unroll]] for (uint k = 0; k < HOLD; ++k) mean += sum_of(held[k]);
    mean = team_sum(mean) / float(C);
  }
  float squares = 0.0;
  [[unroll]] for (uint k = 0; k < HOLD; ++k) {
    const uint b = k * TEAM + lane;
    const vec4 d = mix(vec4(0.0), held[k] - mean, columns_inside(b, C));
    if (b < BLOCKS) squares += sum_of(d * d);
    held[k] = d;
  }
  const float rstd = 1.0 / sqrt(team_sum(squares) / float(C) + epsilon);
  [[unroll]] for (uint k = 0; k < HOLD; ++k) {
    const uint b = k * TEAM + lane;
    if (b >= BLOCKS) continue;
    vec4 r = held[k] * rstd * load_columns(weight, 0, b, C, WEIGHT);
    if (CENTERED) r += load_columns(bias, 0, b, C, WEIGHT);
    store_columns(y, begin, b, C, X, r);
  }
  if (lane != 0) return;
  if (CENTERED) f32_ref(means).at[row] = mean;
  f32_ref(rstds).at[row] = rstd;
}
