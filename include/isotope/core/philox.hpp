#pragma once
/// Counter-based random numbers: a pure function of (key, counter), so that every backend, thread and resumed run draws the same bits.
#include <array>
#include <cstdint>

namespace isotope {

/// Philox 4x32 with 10 rounds. One round, with hi and lo the halves of a 64-bit product:
///   (c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0)), then k += W.
///
/// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c[0], p1 = std::uint64_t(0xCD9E8D57u) * c[2];
    c = {std::uint32_t(p1 >> 32) ^ c[1] ^ k[0], std::uint32_t(p1), std::uint32_t(p0 >> 32) ^ c[3] ^ k[1], std::uint32_t(p0)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

/// Four words for one element of one stream at one step. key = seed; counter = (element low, element high, step, stream).
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t element, std::uint32_t step, std::uint32_t stream) {
  return philox4x32({std::uint32_t(element), std::uint32_t(element >> 32), step, stream}, {std::uint32_t(seed), std::uint32_t(seed >> 32)});
}

/// u = floor(x / 2^8) / 2^24, in [0, 1): every value is exact in f32.
constexpr float unit_interval(std::uint32_t x) { return float(x >> 8) * 0x1p-24f; }

}  // namespace isotope
