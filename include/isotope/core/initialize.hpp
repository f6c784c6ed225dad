#pragma once
/// Parameter initialisation: Philox by (seed, path, element), so that it depends on nothing else.
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "graph.hpp"
#include "philox.hpp"

namespace isotope {

/// The random stream of a parameter: FNV-1a of its path (Fowler, Noll & Vo 1991), 32 bits.
constexpr std::uint32_t stream_of(std::string_view path) {
  std::uint32_t h = 0x811c9dc5u;
  for (char c : path) h = (h ^ std::uint32_t(static_cast<unsigned char>(c))) * 0x01000193u;
  return h;
}

/// Elements 4 block to 4 block + 3 of a parameter. normal, from the words w of one Philox block, u = (w + 0.5) / 2^32:
///   scale sqrt(-2 ln u0) (cos, sin)(2 pi u1),  scale sqrt(-2 ln u2) (cos, sin)(2 pi u3)          (Box & Muller 1958)
inline std::array<double, 4> initial_values(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::uint64_t block) {
  if (how.how == initializer::kind::zeros) return {};
  if (how.how == initializer::kind::ones) return {1, 1, 1, 1};
  const auto w = philox(seed, block, 0xffff'ffffu, stream);
  std::array<double, 4> r{};
  for (std::size_t k = 0; k < 4; k += 2) {
    const double length = how.scale * std::sqrt(-2 * std::log((double(w[k]) + 0.5) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * (double(w[k + 1]) + 0.5) * 0x1p-32;
    r[k] = length * std::cos(angle);
    r[k + 1] = length * std::sin(angle);
  }
  return r;
}

}  // namespace isotope
