#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Softmax (LOGS: its logarithm) of rows. Bound by bytes: rows that fit stay in registers; longer ones are read twice, first with a running maximum
// and a sum scaled to it.
#include "rows/rows.glsl"
#include "math/math.glsl"

layout(constant_id = 5) const uint X = F32;  // format of x and y
layout(constant_id = 6) const bool LOGS = false;
layout(constant_id = 7) const bool HELD = true;  // a row has at most HOLD TEAM blocks

layout(push_constant, scalar) uniform push {
  uint64_t x, y;  // (rows, n)
  uint rows, n;
};

const float LOWEST = -3.40282347e38;

vec4 powers(vec4 v) { return vec4(exp_accurate(v.x), exp_accurate(v.y), exp_accurate(v.z), exp_accurate(v.w)); }

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * n, end = begin + n, first = begin / 4, blocks = blocks_of(begin, end);
  vec4 v[HOLD];
  float top = LOWEST, total = 0.0;
  for (uint b = lane; b < (HELD ? TEAM : blocks); b += HOLD * TEAM) {
    float most = top;
    [[unroll]] for (uint k = 0; k < HOLD; ++k) {
      v[k] = b + k * TEAM < blocks ? load_elements(x, first + b + k * TEAM, begin, end, X, -INFINITY) : vec4(-INFINITY);
      most = max(most, max_of(v[k]));
    }
    if (HELD) {
      top = team_max(most);
    } else {
      total *= exp_accurate(top - most);
      top = most;
    }
    [[unroll]] for (uint k = 0; k < HOLD; ++k) {
      const vec4 e = powers(v[k] - top);
      total += sum_of(e);
      if (HELD && !LOGS) v[k] = e;
    }
  }
  if (!HELD) {
    const float all = team_max(top);
    total *= exp_accurate(top - all);
    top = all;
  }
  total = team_sum(total);
  const float rest = LOGS ? log_accurate(total) : total == 0.0 ? NOT_A_NUMBER : 1.0 / total;
  for (uint b = lane; b < (HELD ? TEAM : blocks); b += HOLD * TEAM)
    [[unroll]] for (uint k = 0; k < HOLD; ++k) {
      const uint at = b + k * TEAM;
      if (at >= blocks) continue;
      vec4 r = HELD ? v[k] : load_elements(x, first + at, begin, end, X, 0.0);
      if (LOGS) r = (r - top) - rest;
      else r = (HELD ? r : powers(r - top)) * rest;
      store_elements(y, first + at, begin, end, X, r);
    }
}
