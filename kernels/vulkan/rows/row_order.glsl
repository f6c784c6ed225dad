// Compares the numbers of a row as words of the same order, so that a driver's handling of NaN does not matter. Needs rows.glsl.
shared uint order_parts[WG / SUBGROUP];

// Returns the largest word to every invocation of a team. Whole teams call it.
uint team_max_word(uint x) {
  x = subgroupMax(x);
  if (TEAM == SUBGROUP) return x;
  if (subgroupElect()) order_parts[gl_SubgroupID] = x;
  barrier();
  x = 0;
  for (uint i = gl_SubgroupInvocationID; i < WG / SUBGROUP; i += SUBGROUP) x = max(x, order_parts[i]);
  x = subgroupMax(x);
  barrier();
  return x;
}
// Returns a word above zero that grows with the number, or falls if `least`; NaN is the largest. -0 is below 0, or equal to it if `one_zero`.
uint order_of(float v, bool least, bool one_zero) {
  const uint u = floatBitsToUint(v), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return 0xffffffffu;
  const bool below = u > 0x7fffffffu && !(one_zero && a == 0);
  const uint up = below ? 0x7fffffffu - a : 0x80000000u + a;
  return least ? 0u - up : up;
}
