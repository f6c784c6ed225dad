// Multiplies what the invocations of a team hold, in an order that depends on its size alone. Needs rows.glsl.
shared float team_products[WG / SUBGROUP];

// Returns the product of the terms of all invocations of the team before this one; `all` is that of the whole team. Whole teams call it.
float product_before(float term, out float all) {
  float before = subgroupExclusiveMul(term);
  all = subgroupMul(term);
  if (TEAM == SUBGROUP) return before;
  if (subgroupElect()) team_products[gl_SubgroupID] = all;
  barrier();
  all = 1.0;
  for (uint i = 0; i < WG / SUBGROUP; ++i) {
    if (i < gl_SubgroupID) before *= team_products[i];
    all *= team_products[i];
  }
  barrier();
  return before;
}
