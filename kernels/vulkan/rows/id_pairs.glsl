// Ids with their positions while they are sorted: a pass orders them by one digit of the id and keeps the order of equal digits, so that all passes
// together order by id, then position. Ids outside the table count as V and come last.
layout(constant_id = 2) const uint DIGIT_BITS = 6;     // 2^DIGIT_BITS <= WG
layout(constant_id = 3) const uint ITEMS = 4;          // pairs per invocation
layout(constant_id = 4) const bool FIRST_PASS = true;  // the pairs are still ids at their positions

const uint DIGITS = 1 << DIGIT_BITS;

uvec2 pair_at(uint64_t from, uint i, uint V) {
  return FIRST_PASS ? uvec2(min(u32_ref(from).at[i], V), i) : u32x2_ref(from).at[i];
}
uint digit_of(uvec2 pair, uint shift) { return (pair.x >> shift) & (DIGITS - 1); }
