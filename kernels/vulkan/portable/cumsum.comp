#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Running sums of rows, one team per row. An element's sum is made of the sums within its block of four, of the earlier blocks in the team's round,
// and, compensated, of all earlier rounds. Bound by bytes.
#include "rows/rows.glsl"
#include "math/two_float.glsl"

layout(constant_id = 5) const uint X = F32;  // format of x and y
layout(constant_id = 6) const bool REVERSE = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;  // (rows, n)
  uint rows, n;
};

shared float turn_sums[WG / SUBGROUP];

// Returns the sum of the terms of all invocations of the team before this one; `all` is that of the whole team.
float sum_before(float term, out float all) {
  float before = subgroupExclusiveAdd(term);
  all = subgroupAdd(term);
  if (TEAM == SUBGROUP) return before;
  if (subgroupElect()) turn_sums[gl_SubgroupID] = all;
  barrier();
  all = 0.0;
  for (uint i = 0; i < WG / SUBGROUP; ++i) {
    if (i < gl_SubgroupID) before += turn_sums[i];
    all += turn_sums[i];
  }
  barrier();
  return before;
}

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * n, end = begin + n, first = begin / 4, blocks = blocks_of(begin, end);
  vec2 turns = vec2(0.0);
  for (uint turn = 0; turn < blocks; turn += TEAM) {
    const uint b = turn + lane, at = first + (REVERSE ? blocks - 1 - b : b);
    vec4 v = b < blocks ? load_elements(x, at, begin, end, X, 0.0) : vec4(0.0);
    if (REVERSE) v = v.wzyx;
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    float all;
    const float before = sum_before(v.w, all) + value_of(turns);
    turns = plus(turns, all);
    if (b >= blocks) continue;
    v += before;
    store_elements(y, at, begin, end, X, REVERSE ? v.wzyx : v);
  }
}
