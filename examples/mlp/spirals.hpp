#pragma once
/// Two interleaved spirals: any number of points, generated from a seed, that no straight line separates.
#include <isotope/core/philox.hpp>

#include <cmath>
#include <cstdint>

namespace mlp_program {

struct point {
  float x, y;
  std::int32_t arm;
};

/// r = u^(1/2), angle = 3 pi r + pi arm + 0.15 (v - 1/2);  (x, y) = r (cos, sin) angle,  u and v uniform, arm = index mod 2.
inline point spiral_point(std::uint64_t seed, std::uint64_t index) {
  const auto words = isotope::philox(seed, index, 0, 0);
  const double r = std::sqrt(double(isotope::unit_interval(words[0])));
  const auto arm = std::int32_t(index % 2);
  const double angle = 3.14159265358979 * (3 * r + arm) + 0.15 * (double(isotope::unit_interval(words[1])) - 0.5);
  return {float(r * std::cos(angle)), float(r * std::sin(angle)), arm};
}

}  // namespace mlp_program
