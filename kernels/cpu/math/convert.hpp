#pragma once
/// Converts contiguous arrays between bf16 and f32 in whole vectors; bound by bytes. Conversion to bf16 rounds to nearest, ties to even, and keeps
/// NaN as a quiet NaN; conversion from bf16 is exact.
#include <bit>
#include <cstring>

#include <isotope/backend/cpu/instructions.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// One vector register of f32, its bits, and as many bits of bf16.
struct bf16_lanes {
  static constexpr std::int64_t count = config::vector_bytes / 4;
  using numbers __attribute__((vector_size(config::vector_bytes))) = float;
  using words __attribute__((vector_size(config::vector_bytes))) = std::uint32_t;
  using halves __attribute__((vector_size(config::vector_bytes / 2))) = std::uint16_t;

  static ISOTOPE_INLINE words bits_of(const float* x) {
    words u;
    std::memcpy(&u, x, sizeof u);
    return u;
  }
  static ISOTOPE_INLINE words widened(const halves& h) {
    if constexpr (config::has_wide_halves) {
      words u;
      isa::widen_halves(u, h);
      return u << 16;
    } else {
      return __builtin_convertvector(h, words) << 16;
    }
  }
  static ISOTOPE_INLINE words widened(const bfloat16* x) {
    halves h;
    std::memcpy(&h, x, sizeof h);
    return widened(h);
  }
  /// Rounds the bits of f32 numbers as bfloat16 does; the result is in the upper half of each word, the lower half is arbitrary.
  static ISOTOPE_INLINE words rounded(words u) {
    const words number = u + 0x7fff + (u >> 16 & 1), nan = u | 0x40'0000;
    const auto x = std::bit_cast<numbers>(u);
    return x == x ? number : nan;
  }
  static ISOTOPE_INLINE void put_upper(words u, bfloat16* y) {
    const halves h = __builtin_convertvector(u >> 16, halves);
    std::memcpy(static_cast<void*>(y), &h, sizeof h);
  }
  /// As put_upper(rounded(u)), by the processor's instruction for normal numbers where there is one.
  static ISOTOPE_INLINE void put_rounded(words u, bfloat16* y) {
    if constexpr (config::has_bf16_pairs && config::vector_bytes == 64) {
      const auto x = std::bit_cast<numbers>(u);
      std::uint16_t subnormal = 0;
      isa::find_subnormal_lanes(subnormal, x);
      if (subnormal == 0) {
        halves h;
        isa::round_to_bf16(h, x);
        std::memcpy(static_cast<void*>(y), &h, sizeof h);
        return;
      }
    }
    put_upper(rounded(u), y);
  }
  /// As put_rounded for two vectors, in half the time: it checks both for subnormal numbers at once.
  static ISOTOPE_INLINE void put_two_rounded(words u, words v, bfloat16* y) {
    if constexpr (config::has_bf16_pairs && config::vector_bytes == 64) {
      const auto a = std::bit_cast<numbers>(u), b = std::bit_cast<numbers>(v);
      std::uint16_t first = 0, second = 0;
      isa::find_subnormal_lanes(first, a);
      isa::find_subnormal_lanes(second, b);
      if ((first | second) == 0) {
        words both;
        isa::round_two_to_bf16(both, a, b);
        std::memcpy(static_cast<void*>(y), &both, sizeof both);
        return;
      }
    }
    put_upper(rounded(u), y);
    put_upper(rounded(v), y + count);
  }
  static ISOTOPE_INLINE void put(words u, float* y) { std::memcpy(y, &u, sizeof u); }
};

/// y[i] = x[i]
inline void widen(const bfloat16* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + bf16_lanes::count <= n; i += bf16_lanes::count) bf16_lanes::put(bf16_lanes::widened(x + i), y + i);
  for (; i < n; ++i) y[i] = float(x[i]);
}
/// y[i] = x[i], rounded
inline void narrow(const float* x, bfloat16* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 2 * bf16_lanes::count <= n; i += 2 * bf16_lanes::count)
    bf16_lanes::put_two_rounded(bf16_lanes::bits_of(x + i), bf16_lanes::bits_of(x + i + bf16_lanes::count), y + i);
  for (; i + bf16_lanes::count <= n; i += bf16_lanes::count) bf16_lanes::put_rounded(bf16_lanes::bits_of(x + i), y + i);
  for (; i < n; ++i) y[i] = bfloat16(x[i]);
}
/// x[i] rounded to bf16, in place.
inline void round_to_bf16(float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + bf16_lanes::count <= n; i += bf16_lanes::count)
    bf16_lanes::put(bf16_lanes::rounded(bf16_lanes::bits_of(x + i)) & 0xffff'0000u, x + i);
  for (; i < n; ++i) x[i] = float(bfloat16(x[i]));
}
/// Rounds x[i] in place and stores it in y[i], too.
inline void round_to_bf16(float* x, bfloat16* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + bf16_lanes::count <= n; i += bf16_lanes::count) {
    const auto u = bf16_lanes::rounded(bf16_lanes::bits_of(x + i));
    bf16_lanes::put(u & 0xffff'0000u, x + i);
    bf16_lanes::put_upper(u, y + i);
  }
  for (; i < n; ++i) {
    y[i] = bfloat16(x[i]);
    x[i] = float(y[i]);
  }
}

/// y[i] = x[i] in the format of y. x and y do not overlap, unless they are the same array of the same type.
template <class From, class To> void convert(const From* x, To* y, std::int64_t n) {
  if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>) widen(x, y, n);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) narrow(x, y, n);
  else map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return v; }, x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
