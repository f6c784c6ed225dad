#pragma once
/// Fills a tensor with one number.
#include <bit>
#include <cmath>
#include <limits>

#include <isotope/op/fill.hpp>
#include <isotope/shaders/reference_fill.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// Rounds x to odd in f32: an inexact result gets an odd last bit, so that rounding it again to 16 bits gives x rounded once.
inline float rounded_to_odd(double x) {
  float f = float(x);
  if (std::isnan(x) || double(f) == x) return f;
  if (std::fabs(double(f)) > std::fabs(x)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1u);
}
/// Rounds x toward zero into [least, most]; NaN gives 0. The ends are exact: doubles beyond 2^53 are integers.
template <class I> std::uint64_t integer_bits(double x) {
  using limits = std::numeric_limits<I>;
  if (std::isnan(x)) return 0;
  if (x <= double(limits::min())) return std::uint64_t(limits::min());
  return std::uint64_t(x >= double(limits::max()) ? limits::max() : I(x));
}
/// Returns the bits of x as an element of format t.
inline std::uint64_t bits_of(dtype t, double x) {
  switch (t) {
    case dtype::f32: return std::bit_cast<std::uint32_t>(float(x));
    case dtype::bf16: return bfloat16(rounded_to_odd(x)).bits;
    case dtype::f16: return float16(rounded_to_odd(x)).bits;
    case dtype::f64: return std::bit_cast<std::uint64_t>(x);
    case dtype::i32: return integer_bits<std::int32_t>(x);
    case dtype::i64: return integer_bits<std::int64_t>(x);
    case dtype::u8: return integer_bits<std::uint8_t>(x);
    case dtype::u16: return integer_bits<std::uint16_t>(x);
    case dtype::u32: return integer_bits<std::uint32_t>(x);
    case dtype::boolean: return x != 0 ? 1 : 0;
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
  return 0;
}

}  // namespace reference

template <class P> struct kernel<op::fill, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view& y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const struct {
      std::uint64_t y, bits;
      std::uint32_t count;
    } push{y.at, reference::bits_of(y.type, l.constants<op::fill>().x), reference::word(n)};
    r.add(shaders::reference_fill, reference::plain(l).add(size_of(y.type)), push, reference::per_item(n), {}, {y});
  }
};

}  // namespace isotope::vulkan
