#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Gradients of layer normalisation (CENTERED) and root-mean-square normalisation. Bound by bytes: one read of x and dy, one write of dx. A workgroup
// walks a chunk of rows, FLIGHT of them in flight at a time. Each team keeps its column sums of dy h and dy in registers and stores them in its row
// of `partial`, which column_sum.comp adds in order. Beyond two blocks per invocation, whole workgroups share the sums of a row: fewer registers, and
// so more workgroups per multiprocessor, hide more latency than fewer subgroup sums save.
#include "rows/rows.glsl"

layout(constant_id = 5) const uint C = 64;
layout(constant_id = 6) const bool CENTERED = true;
layout(constant_id = 7) const uint X = F32;       // format of x and dx
layout(constant_id = 8) const uint WEIGHT = F32;  // format of weight
layout(constant_id = 9) const uint FLIGHT = 2;    // even

layout(push_constant, scalar) uniform push {
  uint64_t x, weight, means, rstds, dy, dx;  // (rows, C), (C), (rows), (rows), (rows, C), (rows, C)
  uint64_t partial;                          // (workgroups, TEAMS, CENTERED ? 2 : 1, C) f32: dweight, dbias
  uint rows, each;                           // each: rows of a workgroup, a multiple of FLIGHT TEAMS
};

const uint BLOCKS = (C + 3) / 4, PAIRS = FLIGHT / 2;

void main() {
  const uint lane = lane_index(), team = team_index(), end = min(rows, (group_index() + 1) * each);
  vec4 w[HOLD], dweight[HOLD], dbias[HOLD];
  [[unroll]] for (uint k = 0; k < HOLD; ++k) {
    const uint b = k * TEAM + lane;
    w[k] = b < BLOCKS ? load_columns(weight, 0, b, C, WEIGHT) : vec4(0.0);
    dweight[k] = dbias[k] = vec4(0.0);
  }
  // Teams share a barrier, so they run the same number of iterations.
  for (uint row = group_index() * each + team * FLIGHT; row < end; row += TEAMS * FLIGHT) {
    vec4 h[FLIGHT * HOLD], g[FLIGHT * HOLD];
    float mean[FLIGHT], rstd[FLIGHT];
    [[unroll]] for (uint f = 0; f < FLIGHT; ++f) {
      const bool there = row + f < end;
      mean[f] = CENTERED && there ? f32_ref(means).at[row + f] : 0.0;
      rstd[f] = there ? f32_ref(rstds).at[row + f] : 0.0;
      [[unroll]] for (uint k = 0; k < HOLD; ++k) {
        const uint b = k * TEAM + lane, at = f * HOLD + k;
        h[at] = g[at] = vec4(0.0);
        if (there && b < BLOCKS) {
          h[at] = load_columns(x, (row + f) * C, b, C, X);
          g[at] = load_columns(dy, (row + f) * C, b, C, X);
        }
      }
    }
    vec4 sums[PAIRS];  // of e and e h, for two rows
    [[unroll]] for (uint p = 0; p < PAIRS; ++p) sums[p] = vec4(0.0);
    [[unroll]] for (uint f = 0; f < FLIGHT; ++f)
      [[unroll]] for (uint k = 0; k < HOLD; ++k) {
        const uint at = f * HOLD + k;
        h[at] = (h[at] - mean[f]) * rstd[f];
        dweight[k] += g[at] * h[at];
        dbias[k] += g[at];
        g[at] *= w[k];
        const vec2 part = vec2(CENTERED ? sum_of(g[at]) : 0.0, sum_of(g[at] * h[at]));
        if (f % 2 == 0) sums[f / 2].xy += part;
        else sums[f / 2].zw += part;
      }
    [[unroll]] for (uint p = 0; p < PAIRS; ++p) sums[p] = team_sum(sums[p]) / float(C);
    [[unroll]] for (uint f = 0; f < FLIGHT; ++f) {
      if (row + f >= end) continue;
      const vec2 avg = f % 2 == 0 ? sums[f / 2].xy : sums[f / 2].zw;
      [[unroll]] for (uint k = 0; k < HOLD; ++k) {
        const uint b = k * TEAM + lane, at = f * HOLD + k;
        if (b < BLOCKS) store_columns(dx, (row + f) * C, b, C, X, rstd[f] * (g[at] - avg.x - h[at] * avg.y));
      }
    }
  }
  const uint part = (group_index() * TEAMS + team) * (CENTERED ? 2 : 1) * C;
  [[unroll]] for (uint k = 0; k < HOLD; ++k) {
    const uint b = k * TEAM + lane;
    if (b >= BLOCKS) continue;
    store_columns(partial, part, b, C, F32, dweight[k]);
    if (CENTERED) store_columns(partial, part + C, b, C, F32, dbias[k]);
  }
}
