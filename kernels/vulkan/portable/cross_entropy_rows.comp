#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// One workgroup goes over the rows whose target is a class, in a fixed order: the mean of their losses, or dloss divided by their number.
#include "rows/rows.glsl"

layout(constant_id = 5) const bool GRADIENT = false;

layout(push_constant, scalar) uniform push {
  uint64_t targets;  // (rows) i32
  uint64_t x;        // (rows) f32 losses, 0 in rows that do not count; or dloss, () f32
  uint64_t y;        // () f32
  uint rows, V;
};

uvec4 load_targets(uint b) {
  if (WIDE) return u32x4_ref(targets).at[b];
  uvec4 t = uvec4(0xffffffffu);  // no class
  [[unroll]] for (uint j = 0; j < 4; ++j)
    if (4 * b + j < rows) t[j] = u32_ref(targets).at[4 * b + j];
  return t;
}

void main() {
  const uint lane = lane_index();
  float total = 0.0, counted = 0.0;  // exact up to 2^24 rows
  for (uint b = lane; 4 * b < rows; b += TEAM) {
    counted += sum_of(mix(vec4(0.0), vec4(1.0), lessThan(load_targets(b), uvec4(V))));
    if (!GRADIENT) total += sum_of(load_columns(x, 0, b, rows, F32));
  }
  const vec4 sums = team_sum(vec4(counted, total, 0.0, 0.0));
  if (lane != 0) return;
  if (GRADIENT) f32_ref(y).at[0] = f32_ref(x).at[0] / max(1.0, sums.x);
  else f32_ref(y).at[0] = sums.x == 0.0 ? 0.0 : sums.y / sums.x;
}
