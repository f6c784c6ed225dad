#pragma once
/// Philox 4x32-10 written independently from Salmon et al. 2011: references of random ops share no code with the kernels.
#include <array>
#include <cstdint>

namespace isotope::conform {

inline std::array<std::uint32_t, 4> philox_words(std::uint64_t key, std::uint64_t element, std::uint32_t step, std::uint32_t stream) {
  std::uint32_t left[2] = {std::uint32_t(element), step}, right[2] = {std::uint32_t(element >> 32), stream};
  std::uint32_t k[2] = {std::uint32_t(key), std::uint32_t(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * left[0], b = std::uint64_t(0xCD9E8D57u) * left[1];
    left[0] = std::uint32_t(b >> 32) ^ right[0] ^ k[0];
    left[1] = std::uint32_t(a >> 32) ^ right[1] ^ k[1];
    right[0] = std::uint32_t(b);
    right[1] = std::uint32_t(a);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return {left[0], right[0], left[1], right[1]};
}

}  // namespace isotope::conform
