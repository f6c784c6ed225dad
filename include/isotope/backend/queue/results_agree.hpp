#pragma once
/// Whether two variants of a kernel computed the same.
#include <algorithm>
#include <cstddef>
#include <span>

#include "../../core/precision.hpp"
#include "../session/ports.hpp"

namespace isotope {

/// Whether two results of the same sums, added up in different orders, agree: the norm of the difference is at most 2^-6 of the norm of a run of numbers where
/// they are rounded to 16 bits, and 2^-9 where they are not. Rounding differs by at most 2^-7 (bf16) of each number, sums of K products of independent signs by about
/// 2^-23 sqrt(K); a wrong element of such a sum is off by about its size.
inline bool results_agree(dtype type, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return true;
  if (!is_floating(type)) return false;
  const auto width = std::size_t(size_of(type));
  constexpr std::size_t run = 64;  // elements
  for (std::size_t at = 0; at < a.size() / width; at += run) {
    double difference = 0, size = 0;
    for (std::size_t i = at; i < std::min(at + run, a.size() / width); ++i) {
      const double x = number_at(a.data() + i * width, type), y = number_at(b.data() + i * width, type);
      difference += (x - y) * (x - y);
      size += std::max(x * x, y * y);
    }
    const double bound = size_of(type) == 2 ? 0x1p-6 : 0x1p-9;
    if (!(difference <= bound * bound * size)) return false;
  }
  return true;
}

/// A part of a result in memory.
struct result_part {
  std::int64_t at = 0, bytes = 0;
  dtype type = dtype::f32;
};
/// Whether all parts of two results agree, which lie one behind the other.
inline bool results_agree(std::span<const result_part> parts, std::span<const std::byte> a, std::span<const std::byte> b) {
  std::size_t at = 0;
  for (const result_part& p : parts) {
    const auto n = std::size_t(p.bytes);
    if (!results_agree(p.type, a.subspan(at, n), b.subspan(at, n))) return false;
    at += n;
  }
  return true;
}

}  // namespace isotope
