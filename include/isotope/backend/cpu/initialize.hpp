#pragma once
/// Parameter initialisation: Philox by (seed, path, element), so that it depends on nothing else.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "../../core/graph.hpp"
#include "../../core/philox.hpp"

namespace isotope::cpu {

/// The random stream of a parameter: FNV-1a of its path (Fowler, Noll & Vo 1991), 32 bits.
constexpr std::uint32_t stream_of(std::string_view path) {
  std::uint32_t h = 0x811c9dc5u;
  for (char c : path) h = (h ^ std::uint32_t(static_cast<unsigned char>(c))) * 0x01000193u;
  return h;
}

/// Element i of a parameter. normal: scale sqrt(-2 ln u1) cos(2 pi u2), words 0 and 1 of one Philox block (Box & Muller 1958), u = (word + 0.5) / 2^32.
inline double initial_value(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::uint64_t element) {
  if (how.how == initializer::kind::zeros) return 0;
  if (how.how == initializer::kind::ones) return 1;
  const auto w = philox(seed, element, 0xffff'ffffu, stream);
  const double u1 = (double(w[0]) + 0.5) * 0x1p-32, u2 = (double(w[1]) + 0.5) * 0x1p-32;
  return how.scale * std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

}  // namespace isotope::cpu
