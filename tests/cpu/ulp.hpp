#pragma once
/// The error of an f32 result in units in the last place (ULP) of the true value rounded to f32.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace isotope_test {

/// 0 for two NaN or two equal infinities; infinity if only one is NaN, or y is infinite and the true value is representable.
inline double ulp_error(float y, double truth) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(truth) || std::isnan(y)) return std::isnan(truth) && std::isnan(y) ? 0.0 : infinity;
  const auto rounded = float(truth);
  if (std::isinf(rounded) || std::isinf(y)) return y == rounded ? 0.0 : infinity;
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(rounded) >> 23) & 0xffu;
  const int place = int(exponent > 1 ? exponent : 1) - 150;  // subnormals have the unit of the smallest normal number
  const double unit = std::bit_cast<double>(std::uint64_t(place + 1023) << 52);
  return std::fabs(double(y) - truth) / unit;
}

}  // namespace isotope_test
