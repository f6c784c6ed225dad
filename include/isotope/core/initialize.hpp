#pragma once
/// Parameter initialisation. Each value is computed by Philox from (seed, path, element) and depends on nothing else.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "normal.hpp"
#include "philox_words.hpp"
#include "trace.hpp"

namespace isotope {

/// The random stream of a parameter: FNV-1a of its path (Fowler, Noll & Vo 1991), 32 bits.
constexpr std::uint32_t stream_of(std::string_view path) {
  std::uint32_t h = 0x811c9dc5u;
  for (char c : path) h = (h ^ std::uint32_t(static_cast<unsigned char>(c))) * 0x01000193u;
  return h;
}

/// Initial values are computed in runs of 64, which take 16 calls of Philox.
inline constexpr std::int64_t initial_run = 4 * philox_words::width;

/// x[i] = element 64 run + i of a parameter, 0 <= i < 64. normal: elements 4 b to 4 b + 3 are scale times the two pairs of normal numbers from the
/// words of philox(seed, b, 2^32 - 1, stream).
ISOTOPE_INLINE void initial_values(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::uint64_t run, double* x) {
  if (how.how != initializer::kind::normal) {
    std::fill_n(x, initial_run, how.how == initializer::kind::ones ? 1.0 : 0.0);
    return;
  }
  constexpr int width = philox_words::width;
  philox_words w;
  for (int j = 0; j < width; ++j) {
    const std::uint64_t block = run * width + std::uint64_t(j);
    w.c0[j] = std::uint32_t(block);
    w.c1[j] = std::uint32_t(block >> 32);
    w.c2[j] = 0xffff'ffffu;
    w.c3[j] = stream;
  }
  w.run(seed);
  double part[4][width];
  for (int j = 0; j < width; ++j) {
    const auto [a, b] = normal::pair(w.c0[j], w.c1[j]);
    part[0][j] = how.scale * a;
    part[1][j] = how.scale * b;
  }
  for (int j = 0; j < width; ++j) {
    const auto [a, b] = normal::pair(w.c2[j], w.c3[j]);
    part[2][j] = how.scale * a;
    part[3][j] = how.scale * b;
  }
  for (int j = 0; j < width; ++j)
    for (int k = 0; k < 4; ++k) x[4 * j + k] = part[k][j];
}

/// Computes the runs first to end - 1 of a parameter of `count` elements, and calls put(i, x, n) with the elements i to i + n - 1 of each.
template <class Put>
void for_initial_runs(const initializer& how, std::uint64_t seed, std::uint32_t stream, std::int64_t count, std::int64_t first,
                      std::int64_t end, const Put& put) {
  double x[initial_run];
  for (std::int64_t r = first; r < end && r * initial_run < count; ++r) {
    initial_values(how, seed, stream, std::uint64_t(r), x);
    put(r * initial_run, x, std::min(initial_run, count - r * initial_run));
  }
}

}  // namespace isotope
