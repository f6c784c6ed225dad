#pragma once
// Philox 4x32 with 10 rounds, bit for bit as core/philox.hpp: a pure function of (seed, element, step, stream).
#include "../device/access.cuh"

namespace isotope::cuda::gpu {

struct random_words {
  std::uint32_t word[4];
};
/// Returns four words for one element of one stream at one step.
__device__ inline random_words philox(std::uint64_t seed, std::uint64_t element, std::uint32_t step, std::uint32_t stream) {
  std::uint32_t c0 = std::uint32_t(element), c1 = std::uint32_t(element >> 32), c2 = step, c3 = stream;
  std::uint32_t k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c0, p1 = std::uint64_t(0xCD9E8D57u) * c2;
    c0 = std::uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = std::uint32_t(p1);
    c2 = std::uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = std::uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
/// Returns the random word of an element; four neighbours share a call.
__device__ inline std::uint32_t random_word(const scalars& s, std::uint64_t element, std::uint32_t stream) {
  const random_words words = philox(s.seed, element / 4, std::uint32_t(s.counter), stream);
  const int k = int(element % 4);
  return k == 0 ? words.word[0] : k == 1 ? words.word[1] : k == 2 ? words.word[2] : words.word[3];
}

}  // namespace isotope::cuda::gpu
