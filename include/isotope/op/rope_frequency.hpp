#pragma once
/// The rotation frequencies of rope, for kernels.
#include <cmath>
#include <cstdint>
#include <numbers>

#include "rope.hpp"

namespace isotope::op {

/// The angle in radians by which pair d of a head of D elements turns from one position to the next.
inline double rope_frequency(const rope::constants& c, std::int64_t d, std::int64_t D) {
  const double f = std::pow(c.base, -2.0 * double(d) / double(D));
  const auto& s = c.scaling;
  if (s.context == 0) return f;
  const double fitting = double(s.context) * f / (2 * std::numbers::pi);  // wavelengths in the context
  if (fitting > s.high) return f;
  if (fitting < s.low) return f / s.factor;
  const double t = (fitting - s.low) / (s.high - s.low);
  return (1 - t) * f / s.factor + t * f;
}
/// The same in 2^-64 of a turn, modulo a whole turn: times an integer position, modulo 2^64, it gives the angle without rounding.
inline std::uint64_t rope_turn(const rope::constants& c, std::int64_t d, std::int64_t D) {
  const double turns = rope_frequency(c, d, D) / (2 * std::numbers::pi), part = turns - std::floor(turns);
  const double high = std::floor(part * 0x1p32);
  return (std::uint64_t(high) << 32) + std::uint64_t((part * 0x1p32 - high) * 0x1p32);
}

}  // namespace isotope::op
