#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// y[row, piece] = sum over a piece of row `row` of x. Bound by bytes: a team per piece, four blocks per invocation in flight. A few long rows take
// two passes, pieces first: the order of the terms depends only on the shape and the size of a team.
#include "rows/rows.glsl"

layout(constant_id = 5) const uint X = F32;
layout(constant_id = 6) const uint Y = F32;
layout(constant_id = 7) const bool MEAN = false;  // divides by `terms`

layout(push_constant, scalar) uniform push {
  uint64_t x;         // (rows, pitch), n elements of a row
  uint64_t y;         // (rows, pieces)
  uint results;       // rows pieces
  uint n, pitch;
  uint pieces, each;  // elements of a piece, a multiple of four
  float terms;
};

const uint FLIGHT = 4;

void main() {
  const uint result = group_index() * TEAMS + team_index(), lane = lane_index();
  if (result >= results) return;
  const uint start = result / pieces * pitch, begin = start + result % pieces * each, end = min(start + n, begin + each);
  const uint first = begin / 4, blocks = end > begin ? blocks_of(begin, end) : 0;
  vec4 sum = vec4(0.0);
  for (uint b = lane; b < blocks; b += FLIGHT * TEAM) {
    vec4 v[FLIGHT];
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k)
      v[k] = b + k * TEAM < blocks ? load_elements(x, first + b + k * TEAM, begin, end, X, 0.0) : vec4(0.0);
    sum += (v[0] + v[1]) + (v[2] + v[3]);
  }
  const float total = team_sum(sum_of(sum));
  if (lane == 0) store(y, result, Y, MEAN ? total / terms : total);
}
