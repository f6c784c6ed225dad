#pragma once
/// Numbers for the operands of steps that are timed.
#include <cstdint>
#include <vector>

namespace isotope {

/// No lambda in `operand_noise`, which would be constexpr: g++ would compute the numbers while it compiles, in 20 s and 2 GB.
inline std::vector<std::uint32_t> made_operand_noise() {
  std::vector<std::uint32_t> all(1 << 20);
  std::uint32_t x = 12345;
  for (auto& w : all) {
    x = x * 1664525u + 1013904223u;
    w = ((x >> 8) & 0x00ff00ffu) | (x & 0x80000000u) | ((x << 7) & 0x8000u) | 0x3f003f00u;
  }
  return all;
}
/// Numbers of magnitude 0.5 to 2 in every format: zeros would draw less power and time too fast.
inline const std::vector<std::uint32_t>& operand_noise() {
  static const std::vector<std::uint32_t> block = made_operand_noise();
  return block;
}

}  // namespace isotope
