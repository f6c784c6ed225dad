#pragma once
/// Parameter initialisation: Philox by (seed, slot, element), so that it depends on nothing else.
#include <cmath>
#include <cstdint>
#include <numbers>

#include "../../core/graph.hpp"
#include "../../core/philox.hpp"

namespace isotope::cpu {

/// Element i of slot k. normal: scale sqrt(-2 ln u1) cos(2 pi u2), words 0 and 1 of one Philox block (Box & Muller 1958), u = (word + 0.5) / 2^32.
inline double initial_value(const initializer& how, std::uint64_t seed, std::uint32_t slot, std::uint64_t element) {
  if (how.how == initializer::kind::zeros) return 0;
  if (how.how == initializer::kind::ones) return 1;
  const auto w = philox(seed, element, 0xffff'ffffu, slot);
  const double u1 = (double(w[0]) + 0.5) * 0x1p-32, u2 = (double(w[1]) + 0.5) * 0x1p-32;
  return how.scale * std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

}  // namespace isotope::cpu
