#pragma once
/// Elements of any format on the host.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../core/precision.hpp"

namespace isotope {

/// The format whose elements the host holds as E.
template <class E>
inline constexpr dtype format_of = [] {
  static_assert(sizeof(E) == 0,
                "no number format has elements of this type: give float, double, bfloat16, float16 or an integer of fixed width");
  return dtype::f32;
}();
template <> inline constexpr dtype format_of<float> = dtype::f32;
template <> inline constexpr dtype format_of<double> = dtype::f64;
template <> inline constexpr dtype format_of<bfloat16> = dtype::bf16;
template <> inline constexpr dtype format_of<float16> = dtype::f16;
template <> inline constexpr dtype format_of<std::int32_t> = dtype::i32;
template <> inline constexpr dtype format_of<std::int64_t> = dtype::i64;
template <> inline constexpr dtype format_of<std::uint16_t> = dtype::u16;
template <> inline constexpr dtype format_of<std::uint32_t> = dtype::u32;
template <> inline constexpr dtype format_of<std::uint8_t> = dtype::u8;

/// One element, widened to f64; bool gives 0 or 1.
inline double element_at(const std::byte* at, dtype t) {
  const auto as = [&]<class E>(E x) {
    std::memcpy(&x, at, sizeof x);
    return x;
  };
  switch (t) {
    case dtype::f32: return double(as(float()));
    case dtype::bf16: return double(float(as(bfloat16())));
    case dtype::f16: return double(float(as(float16())));
    case dtype::f64: return as(double());
    case dtype::i32: return double(as(std::int32_t()));
    case dtype::i64: return double(as(std::int64_t()));
    case dtype::u16: return double(as(std::uint16_t()));
    case dtype::u32: return double(as(std::uint32_t()));
    case dtype::u8: return double(as(std::uint8_t()));
    case dtype::boolean: return as(std::uint8_t()) != 0;
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
  return 0;
}

}  // namespace isotope
