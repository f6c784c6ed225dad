#pragma once
/// Tensors of a case: numbers in f64 on one side, the bytes that a device sees on the other.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "../core/precision.hpp"
#include "../core/shape.hpp"

namespace isotope::conform {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

/// A dense tensor in row-major order. Every number is one that `type` holds.
struct array {
  shape dims;
  dtype type = dtype::f32;
  std::vector<double> at;

  array() = default;
  array(const shape& s, dtype t) : dims(s), type(t), at(std::size_t(s.count())) {}
  double operator[](std::int64_t i) const { return at[std::size_t(i)]; }
};

namespace array_detail {
template <class T> T get(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class T> void put(std::byte* to, T x) { std::memcpy(to, &x, sizeof x); }
}  // namespace array_detail

/// x as the bytes of format t: rounded to nearest, ties to even.
inline void encode(dtype t, std::byte* to, double x) {
  using array_detail::put;
  switch (t) {
    case dtype::f32: return put(to, float(x));
    case dtype::bf16: return put(to, bfloat16(float(x)));
    case dtype::f16: return put(to, float16(float(x)));
    case dtype::f64: return put(to, x);
    case dtype::i32: return put(to, std::int32_t(x));
    case dtype::i64: return put(to, std::int64_t(x));
    case dtype::u8: return put(to, std::uint8_t(x));
    case dtype::u16: return put(to, std::uint16_t(x));
    case dtype::u32: return put(to, std::uint32_t(x));
    case dtype::boolean: return put(to, std::uint8_t(x != 0));
  }
}
inline double decode(dtype t, const std::byte* from) {
  using array_detail::get;
  switch (t) {
    case dtype::f32: return double(get<float>(from));
    case dtype::bf16: return double(float(get<bfloat16>(from)));
    case dtype::f16: return double(float(get<float16>(from)));
    case dtype::f64: return get<double>(from);
    case dtype::i32: return double(get<std::int32_t>(from));
    case dtype::i64: return double(get<std::int64_t>(from));
    case dtype::u8:
    case dtype::boolean: return double(get<std::uint8_t>(from));
    case dtype::u16: return double(get<std::uint16_t>(from));
    case dtype::u32: return double(get<std::uint32_t>(from));
  }
  return 0;
}
/// x as format t holds it.
inline double rounded(dtype t, double x) {
  std::byte b[8];
  encode(t, b, x);
  return decode(t, b);
}

/// What a floating-point format can hold.
struct format_facts {
  int digits = 24;            // of the significand, the leading one included
  int least_exponent = -126;  // of the smallest normal number
  double largest = 0;
  double roundoff() const { return std::ldexp(1.0, -digits); }                   // rounding moves x by at most this times |x|
  double least() const { return std::ldexp(1.0, least_exponent + 1 - digits); }  // spacing of the subnormal numbers
  double least_normal() const { return std::ldexp(1.0, least_exponent); }
  /// From here on numbers round to infinity.
  double overflow() const { return largest * (1 + std::ldexp(1.0, -digits - 1)); }
};
inline format_facts facts_of(dtype t) {
  switch (t) {
    case dtype::bf16: return {8, -126, 0x1.FEp127};
    case dtype::f16: return {11, -14, 65504};
    case dtype::f64: return {53, -1022, std::numeric_limits<double>::max()};
    default: return {24, -126, double(std::numeric_limits<float>::max())};
  }
}
/// The distance between x and the next number of format t away from zero.
inline double ulp(dtype t, double x) {
  const format_facts f = facts_of(t);
  if (x == 0 || !std::isfinite(x)) return f.least();
  const int e = std::ilogb(x);
  return std::ldexp(1.0, (e < f.least_exponent ? f.least_exponent : e) + 1 - f.digits);
}

/// x rounded once to nearest, ties to even, by arithmetic: for numbers that pass through no narrower format on the way.
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
/// Position in a tensor of shape `from` that is repeated to the shape that `at` indexes.
inline std::int64_t repeated_position(const shape& from, const extents& at, int rank) {
  std::int64_t p = 0;
  for (int k = 0; k < from.rank; ++k) p = p * from[k] + (from[k] == 1 ? 0 : at[std::size_t(k + rank - from.rank)]);
  return p;
}

}  // namespace isotope::conform
