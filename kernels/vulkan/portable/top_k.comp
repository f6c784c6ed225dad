#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// The k largest elements of each row and their indices: a team per row, k passes, each for the largest element behind the one found before. Bound by
// bytes; passes after the first mostly hit a cache.
#include "rows/rows.glsl"
#include "rows/row_order.glsl"

layout(constant_id = 5) const uint X = F32;  // format of x and of the values

layout(push_constant, scalar) uniform push {
  uint64_t x;               // (rows, n)
  uint64_t values, places;  // (rows, k)
  uint rows, n, k;
};

void main() {
  const uint row = group_index() * TEAMS + team_index(), lane = lane_index();
  if (row >= rows) return;
  const uint begin = row * n;
  uint last = 0, last_place = 0;
  for (uint pass = 0; pass < k; ++pass) {
    uint best = 0, place = 0;
    for (uint i = lane; i < n; i += TEAM) {
      const uint w = order_of(load(x, begin + i, X), false, true);
      const bool left = pass == 0 || w < last || (w == last && i > last_place);
      place = left && w > best ? i : place;
      best = left ? max(best, w) : best;
    }
    last = team_max_word(best);
    last_place = ~team_max_word(best == last ? ~place : 0u);
    if (lane == 0) {
      store(values, row * k + pass, X, load(x, begin + last_place, X));
      u32_ref(places).at[row * k + pass] = last_place;
    }
  }
}
