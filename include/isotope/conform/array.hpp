#pragma once
/// The tensors of a case: numbers in f64 on one side, the bytes that a device sees on the other.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/precision.hpp"
#include "../core/shape.hpp"

namespace isotope::conform {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// A dense tensor in row-major order. `type` can hold every number exactly.
struct array {
  shape dims;
  dtype type = dtype::f32;
  std::vector<double> at;

  array() = default;
  array(const shape& s, dtype t) : dims(s), type(t), at(std::size_t(s.count())) {}
  double operator[](std::int64_t i) const { return at[std::size_t(i)]; }
};

namespace array_detail {
/// A boolean as it lies in memory.
struct truth_byte {
  std::uint8_t bits = 0;
};
template <class T> T packed(double x) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>) return T(float(x));
  else if constexpr (std::is_same_v<T, truth_byte>) return {std::uint8_t(x != 0)};
  else return T(x);
}
template <class T> double unpacked(T x) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>) return double(float(x));
  else if constexpr (std::is_same_v<T, truth_byte>) return double(x.bits);
  else return double(x);
}
/// Calls f with a zero of the C++ type of format t.
template <class F> void with_format(dtype t, F&& f) {
  switch (t) {
    case dtype::f32: return f(0.0f);
    case dtype::bf16: return f(bfloat16());
    case dtype::f16: return f(float16());
    case dtype::f64: return f(0.0);
    case dtype::i32: return f(std::int32_t(0));
    case dtype::i64: return f(std::int64_t(0));
    case dtype::u8: return f(std::uint8_t(0));
    case dtype::u16: return f(std::uint16_t(0));
    case dtype::u32: return f(std::uint32_t(0));
    case dtype::boolean: return f(truth_byte());
    case dtype::q8_0:
    case dtype::q4_0: return f(std::uint8_t(0));  // formats of weights alone
  }
}
}  // namespace array_detail

namespace array_detail {
/// How many elements are converted at a time through a local array: compilers vectorise loops of constant length over memory that cannot alias.
inline constexpr std::size_t at_once = 64;
}  // namespace array_detail

/// Converts numbers to contiguous elements of format t: rounded to nearest, ties to even.
inline void encode(dtype t, std::byte* to, std::span<const double> x) {
  array_detail::with_format(t, [&]<class T>(T) {
    using array_detail::at_once;
    T piece[at_once];
    std::size_t i = 0;
    for (; i + at_once <= x.size(); i += at_once) {
      const double* some = x.data() + i;
      for (std::size_t k = 0; k < at_once; ++k) piece[k] = array_detail::packed<T>(some[k]);
      std::memcpy(to + i * sizeof(T), piece, sizeof piece);
    }
    for (; i < x.size(); ++i) {
      const T y = array_detail::packed<T>(x[i]);
      std::memcpy(to + i * sizeof y, &y, sizeof y);
    }
  });
}
inline void decode(dtype t, const std::byte* from, std::span<double> x) {
  array_detail::with_format(t, [&]<class T>(T) {
    using array_detail::at_once;
    T piece[at_once];
    std::size_t i = 0;
    for (; i + at_once <= x.size(); i += at_once) {
      double* some = x.data() + i;
      std::memcpy(piece, from + i * sizeof(T), sizeof piece);
      for (std::size_t k = 0; k < at_once; ++k) some[k] = array_detail::unpacked(piece[k]);
    }
    for (; i < x.size(); ++i) {
      T y;
      std::memcpy(&y, from + i * sizeof y, sizeof y);
      x[i] = array_detail::unpacked(y);
    }
  });
}
/// Rounds each number as format t stores it.
inline void round_all(dtype t, std::span<double> x) {
  array_detail::with_format(t, [&]<class T>(T) {
    using array_detail::at_once;
    std::size_t i = 0;
    for (; i + at_once <= x.size(); i += at_once) {
      double* some = x.data() + i;
      for (std::size_t k = 0; k < at_once; ++k) some[k] = array_detail::unpacked(array_detail::packed<T>(some[k]));
    }
    for (; i < x.size(); ++i) x[i] = array_detail::unpacked(array_detail::packed<T>(x[i]));
  });
}
inline void encode(dtype t, std::byte* to, double x) { encode(t, to, std::span<const double>(&x, 1)); }
inline double decode(dtype t, const std::byte* from) {
  double x = 0;
  decode(t, from, std::span(&x, 1));
  return x;
}
/// Rounds x as format t stores it.
inline double rounded(dtype t, double x) {
  round_all(t, std::span(&x, 1));
  return x;
}

/// 2^e for -1074 <= e <= 1023, computed inline.
constexpr double power_of_two(int e) {
  return std::bit_cast<double>(e < -1022 ? std::uint64_t(1) << (e + 1074) : std::uint64_t(e + 1023) << 52);
}
/// The range and precision of a floating-point format.
struct format_facts {
  int digits = 24;            // of the significand, the leading one included
  int least_exponent = -126;  // of the smallest normal number
  double largest = 0;
  constexpr double roundoff() const { return power_of_two(-digits); }                   // rounding moves x by at most this times |x|
  constexpr double least() const { return power_of_two(least_exponent + 1 - digits); }  // spacing of the subnormal numbers
  constexpr double least_normal() const { return power_of_two(least_exponent); }
  /// Returns the least number that rounds to infinity.
  constexpr double overflow() const { return largest * (1 + power_of_two(-digits - 1)); }
};
constexpr format_facts facts_of(dtype t) {
  switch (t) {
    case dtype::bf16: return {8, -126, 0x1.FEp127};
    case dtype::f16: return {11, -14, 65504};
    case dtype::f64: return {53, -1022, std::numeric_limits<double>::max()};
    default: return {24, -126, double(std::numeric_limits<float>::max())};
  }
}
/// Returns the distance between x and the next number of format t away from zero.
inline double ulp(dtype t, double x) {
  const format_facts f = facts_of(t);
  if (x == 0 || !std::isfinite(x)) return f.least();
  const int e = int(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;  // the exponent of a subnormal f64 is below every format's
  return power_of_two((e < f.least_exponent ? f.least_exponent : e) + 1 - f.digits);
}

/// Rounds x once to nearest, ties to even, by arithmetic: for numbers that do not pass through a narrower format.
inline double nearest(dtype t, double x) {
  if (!is_floating(t) || t == dtype::f64 || x == 0 || !std::isfinite(x)) return x;
  const format_facts f = facts_of(t);
  if (std::fabs(x) >= f.overflow()) return std::copysign(infinity, x);
  const double quantum = ulp(t, x);
  return std::nearbyint(x / quantum) * quantum;
}

/// Calls f(i, index) for every element, its index in row-major order.
template <class F> void for_each_index(const shape& s, F&& f) {
  extents at{};
  const std::int64_t n = s.count();
  for (std::int64_t i = 0; i < n; ++i) {
    f(i, std::as_const(at));
    for (int k = s.rank - 1; k >= 0 && ++at[std::size_t(k)] == s[k]; --k) at[std::size_t(k)] = 0;
  }
}
/// Returns the position in a tensor of shape `from` that is broadcast to the shape that `at` indexes.
inline std::int64_t repeated_position(const shape& from, const extents& at, int rank) {
  std::int64_t p = 0;
  for (int k = 0; k < from.rank; ++k) p = p * from[k] + (from[k] == 1 ? 0 : at[std::size_t(k + rank - from.rank)]);
  return p;
}

}  // namespace isotope::conform
