#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// y[row, piece] = product over a piece of row `row` of x. Bound by bytes: like row_sum.comp, with products for sums.
#include "rows/rows.glsl"
#include "rows/team_product.glsl"

layout(constant_id = 5) const uint X = F32;
layout(constant_id = 6) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x;         // (rows, pitch), n elements of a row
  uint64_t y;         // (rows, pieces)
  uint results;       // rows pieces
  uint n, pitch;
  uint pieces, each;  // elements of a piece, a multiple of four
};

const uint FLIGHT = 4;

void main() {
  const uint result = group_index() * TEAMS + team_index(), lane = lane_index();
  if (result >= results) return;
  const uint start = result / pieces * pitch, begin = start + result % pieces * each, end = min(start + n, begin + each);
  const uint first = begin / 4, blocks = end > begin ? blocks_of(begin, end) : 0;
  vec4 total = vec4(1.0);
  for (uint b = lane; b < blocks; b += FLIGHT * TEAM) {
    vec4 v[FLIGHT];
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k)
      v[k] = b + k * TEAM < blocks ? load_elements(x, first + b + k * TEAM, begin, end, X, 1.0) : vec4(1.0);
    total *= (v[0] * v[1]) * (v[2] * v[3]);
  }
  float all;
  product_before((total.x * total.y) * (total.z * total.w), all);
  if (lane == 0) store(y, result, Y, all);
}
