// Distributes rows of a tensor, in blocks of four elements, to teams: a team is a subgroup, or a whole workgroup for long rows. The order of a team's
// sums and maxima depends on its size alone. The including file must require GL_KHR_shader_subgroup_arithmetic.
#include "access.glsl"

layout(constant_id = 2) const uint TEAM = 32;    // invocations of a row: SUBGROUP or WG
layout(constant_id = 3) const uint HOLD = 1;     // blocks of a row that an invocation keeps in registers
layout(constant_id = 4) const bool WIDE = true;  // rows are whole blocks, and all tensors are aligned to a block

const uint TEAMS = WG / TEAM;

uint team_index() { return TEAM == SUBGROUP ? gl_SubgroupID : 0; }
uint lane_index() { return TEAM == SUBGROUP ? gl_SubgroupInvocationID : gl_LocalInvocationID.x; }

// Returns the result to every invocation of a team. Whole teams call it.
shared vec4 team_sums[WG / SUBGROUP];
vec4 team_sum(vec4 x) {
  x = subgroupAdd(x);
  if (TEAM == SUBGROUP) return x;
  if (subgroupElect()) team_sums[gl_SubgroupID] = x;
  barrier();
  x = vec4(0.0);
  for (uint i = gl_SubgroupInvocationID; i < WG / SUBGROUP; i += SUBGROUP) x += team_sums[i];
  x = subgroupAdd(x);
  barrier();
  return x;
}
shared float team_parts[WG / SUBGROUP];
float team_sum(float x) {
  x = subgroupAdd(x);
  if (TEAM == SUBGROUP) return x;
  if (subgroupElect()) team_parts[gl_SubgroupID] = x;
  barrier();
  x = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < WG / SUBGROUP; i += SUBGROUP) x += team_parts[i];
  x = subgroupAdd(x);
  barrier();
  return x;
}
float team_max(float x) {
  x = subgroupMax(x);
  if (TEAM == SUBGROUP) return x;
  if (subgroupElect()) team_parts[gl_SubgroupID] = x;
  barrier();
  x = team_parts[0];
  for (uint i = gl_SubgroupInvocationID; i < WG / SUBGROUP; i += SUBGROUP) x = max(x, team_parts[i]);
  x = subgroupMax(x);
  barrier();
  return x;
}
float sum_of(vec4 x) { return (x.x + x.y) + (x.z + x.w); }
float max_of(vec4 x) { return max(max(x.x, x.y), max(x.z, x.w)); }

// Returns columns 4 b to 4 b + 3 of a row of C elements that starts at element `begin`; zero beyond the row.
vec4 load_columns(uint64_t base, uint begin, uint b, uint C, uint t) {
  if (WIDE) return load4(base, begin / 4 + b, t);
  vec4 x = vec4(0.0);
  [[unroll]] for (uint j = 0; j < 4; ++j)
    if (4 * b + j < C) x[j] = load(base, begin + 4 * b + j, t);
  return x;
}
void store_columns(uint64_t base, uint begin, uint b, uint C, uint t, vec4 x) {
  if (WIDE) store4(base, begin / 4 + b, t, x);
  else
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (4 * b + j < C) store(base, begin + 4 * b + j, t, x[j]);
}
bvec4 columns_inside(uint b, uint C) { return WIDE ? bvec4(true) : lessThan(4 * b + uvec4(0, 1, 2, 3), uvec4(C)); }

// Block b of a tensor that is aligned to blocks. Elements outside [begin, end) belong to other rows: they read as `other` and are never written.
bvec4 elements_inside(uint b, uint begin, uint end) {
  const uvec4 e = 4 * b + uvec4(0, 1, 2, 3);
  return bvec4(e.x >= begin && e.x < end, e.y >= begin && e.y < end, e.z >= begin && e.z < end, e.w >= begin && e.w < end);
}
vec4 load_elements(uint64_t base, uint b, uint begin, uint end, uint t, float other) {
  const vec4 x = load4(base, b, t);
  return WIDE ? x : mix(vec4(other), x, elements_inside(b, begin, end));
}
void store_elements(uint64_t base, uint b, uint begin, uint end, uint t, vec4 x) {
  const bvec4 inside = elements_inside(b, begin, end);
  if (WIDE || all(inside)) store4(base, b, t, x);
  else
    [[unroll]] for (uint j = 0; j < 4; ++j)
      if (inside[j]) store(base, 4 * b + j, t, x[j]);
}
// Returns the number of blocks with elements of [begin, end), which is not empty; the first is begin / 4.
uint blocks_of(uint begin, uint end) { return (end + 3) / 4 - begin / 4; }
