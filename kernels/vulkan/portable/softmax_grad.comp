#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Gradient of softmax, dx = y (dy - sum y dy), or of its logarithm (LOGS), dx = dy - e^y sum dy, of rows; dx may overwrite y or dy. Bound by bytes:
// rows that fit stay in registers, longer ones are read twice.
#include "rows/rows.glsl"
#include "math/math.glsl"

layout(constant_id = 5) const uint X = F32;  // format of y, dy and dx
layout(constant_id = 6) const bool LOGS = false;
layout(constant_id = 7) const bool HELD = true;  // a row has at most HOLD TEAM blocks

layout(push_constant, scalar) uniform push {
  uint64_t y, dy, dx;  // (rows, n)
  uint rows, n;
};

vec4 powers(vec4 v) { return vec4(exp_accurate(v.x), exp_accurate(v.y), exp_accurate(v.z), exp_accurate(v.w)); }

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * n, end = begin + n, first = begin / 4, blocks = blocks_of(begin, end);
  vec4 p[HOLD], g[HOLD];
  float total = 0.0;
  for (uint b = lane; b < (HELD ? TEAM : blocks); b += HOLD * TEAM) {
    [[unroll]] for (uint k = 0; k < HOLD; ++k) {
      const bool there = b + k * TEAM < blocks;
      p[k] = there && (HELD || !LOGS) ? load_elements(y, first + b + k * TEAM, begin, end, X, 0.0) : vec4(0.0);
      g[k] = there ? load_elements(dy, first + b + k * TEAM, begin, end, X, 0.0) : vec4(0.0);
    }
    [[unroll]] for (uint k = 0; k < HOLD; ++k) total += sum_of(LOGS ? g[k] : p[k] * g[k]);
  }
  total = team_sum(total);
  for (uint b = lane; b < (HELD ? TEAM : blocks); b += HOLD * TEAM)
    [[unroll]] for (uint k = 0; k < HOLD; ++k) {
      const uint at = b + k * TEAM;
      if (at >= blocks) continue;
      const vec4 q = HELD ? p[k] : load_elements(y, first + at, begin, end, X, 0.0);
      const vec4 d = HELD ? g[k] : load_elements(dy, first + at, begin, end, X, 0.0);
      store_elements(dx, first + at, begin, end, X, LOGS ? d - powers(q) * total : q * (d - total));
    }
}
