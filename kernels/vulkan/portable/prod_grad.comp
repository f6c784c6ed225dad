#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Gradient of the products of rows, a team per row, in two launches: the products of the elements before each element, then (BACK) those of the
// elements behind it, times the former and dy. Bound by bytes.
#include "rows/rows.glsl"
#include "rows/team_product.glsl"

layout(constant_id = 5) const uint X = F32;  // format of x and dx
layout(constant_id = 6) const uint DY = F32;
layout(constant_id = 7) const bool BACK = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, dy, dx;  // (rows, n), (rows), (rows, n)
  uint64_t before;     // (rows, n) f32
  uint rows, n;
};

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * n, end = begin + n, first = begin / 4, blocks = blocks_of(begin, end);
  const float d = BACK ? load(dy, row, DY) : 1.0;
  float turns = 1.0;
  for (uint turn = 0; turn < blocks; turn += TEAM) {
    const uint b = turn + lane, at = first + (BACK ? blocks - 1 - b : b);
    vec4 v = b < blocks ? load_elements(x, at, begin, end, X, 1.0) : vec4(1.0);
    if (BACK) v = v.wzyx;
    const vec3 within = vec3(v.x, v.x * v.y, v.x * v.y * v.z);
    float all;
    const float earlier = product_before(within.z * v.w, all) * turns;
    turns *= all;
    if (b >= blocks) continue;
    const vec4 others = earlier * vec4(1.0, within);
    if (BACK) store_elements(dx, at, begin, end, X, d * (load_elements(before, at, begin, end, F32, 1.0) * others.wzyx));
    else store_elements(before, at, begin, end, F32, others);
  }
}
