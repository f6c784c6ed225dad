#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// The largest (LEAST: smallest) element of each row, NaN if there is one, or the index of the first such element. Bound by bytes: a team per row.
// Numbers are compared as words of the same order, with NaN above all, so that a driver's handling of NaN does not matter.
#include "rows/rows.glsl"
#include "rows/row_order.glsl"

layout(constant_id = 5) const uint X = F32;
layout(constant_id = 6) const uint Y = F32;
layout(constant_id = 7) const bool LEAST = false;
layout(constant_id = 8) const bool PLACE = false;  // y is i32: the index of the first of equals

layout(push_constant, scalar) uniform push {
  uint64_t x;  // (rows, pitch), n elements of a row
  uint64_t y;  // (rows)
  uint rows, n, pitch;
};

const uint FLIGHT = 4;
float number_of(uint w) {
  if (w == 0xffffffffu) return NOT_A_NUMBER;
  const uint up = LEAST ? 0u - w : w;
  return up < 0x80000000u ? uintBitsToFloat(0x80000000u | (0x7fffffffu - up)) : uintBitsToFloat(up - 0x80000000u);
}

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * pitch, end = begin + n, first = begin / 4, blocks = blocks_of(begin, end);
  uint best = 0, place = 0;
  for (uint b = lane; b < blocks; b += FLIGHT * TEAM) {
    vec4 v[FLIGHT];
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k)
      if (b + k * TEAM < blocks) v[k] = load4(x, first + b + k * TEAM, X);
    [[unroll]] for (uint k = 0; k < FLIGHT; ++k) {
      if (b + k * TEAM >= blocks) continue;
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        const uint i = 4 * (first + b + k * TEAM) + j, w = i >= begin && i < end ? order_of(v[k][j], LEAST, PLACE) : 0;
        place = w > best ? i - begin : place;
        best = max(best, w);
      }
    }
  }
  const uint all = team_max_word(best);
  if (PLACE) place = ~team_max_word(best == all ? ~place : 0u);
  if (lane != 0) return;
  if (PLACE) u32_ref(y).at[row] = place;
  else store(y, row, Y, number_of(all));
}
