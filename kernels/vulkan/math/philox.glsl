// Philox 4x32 with 10 rounds, bit for bit as core/philox.hpp: a pure function of (seed, element, step, stream).
uvec4 philox4x32(uvec4 c, uvec2 k) {
  for (uint r = 0; r < 10; ++r) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, c.x, high0, low0);
    umulExtended(0xCD9E8D57u, c.z, high1, low1);
    c = uvec4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    k += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
// Returns four words for one element of one stream at one step. Elements count less than 2^32 here.
uvec4 philox(uint64_t seed, uint element, uint64_t step, uint stream) {
  return philox4x32(uvec4(element, 0u, uint(step), stream), uvec2(uint(seed), uint(seed >> 32)));
}
