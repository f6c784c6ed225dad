#pragma once
/// Philox 4x32-10, 16 calls at once, so that compilers vectorise them.
#include <cstdint>

#include "compiler.hpp"

namespace isotope {

/// Holds sixteen counters of one key, which `run` turns into random words. See philox.hpp for the round.
struct philox_words {
  static constexpr int width = 16;
  std::uint32_t c0[width], c1[width], c2[width], c3[width];

  ISOTOPE_INLINE void run(std::uint64_t seed) {  // inlined: each -march has its own
    auto k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int j = 0; j < width; ++j) {
        const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c0[j], p1 = std::uint64_t(0xCD9E8D57u) * c2[j];
        c0[j] = std::uint32_t(p1 >> 32) ^ c1[j] ^ k0;
        c2[j] = std::uint32_t(p0 >> 32) ^ c3[j] ^ k1;
        c1[j] = std::uint32_t(p1);
        c3[j] = std::uint32_t(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};

}  // namespace isotope
