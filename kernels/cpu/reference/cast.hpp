#pragma once
/// Conversions between formats, each rounded once.
#include <bit>
#include <limits>

#include <isotope/op/cast.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

/// Rounds x to odd in f32: an inexact result gets an odd last bit, so that rounding it again to 16 bits gives x rounded once.
inline float rounded_to_odd(double x) {
  float f = float(x);
  if (std::isnan(x) || double(f) == x) return f;
  if (std::fabs(double(f)) > std::fabs(x)) f = std::nextafter(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) | 1u);
}
inline float rounded_to_odd(std::int64_t n) {
  std::uint64_t m = n < 0 ? 0 - std::uint64_t(n) : std::uint64_t(n);
  int exponent = 0;
  for (; m >= (1u << 24); ++exponent) m = (m >> 1) | (m & 1);
  const float f = std::ldexp(float(m), exponent);
  return n < 0 ? -f : f;
}

template <class I> I to_integer(double x) {
  using limits = std::numeric_limits<I>;
  if (std::isnan(x)) return 0;
  if (x <= double(limits::min())) return limits::min();
  return x >= double(limits::max()) ? limits::max() : I(x);
}
template <class I> I to_integer(std::int64_t n) {
  using limits = std::numeric_limits<I>;
  if (n < std::int64_t(limits::min())) return limits::min();
  return n > std::int64_t(limits::max()) ? limits::max() : I(n);
}

/// Stores a double or a std::int64_t in the format of v.
template <class Number> void store_cast(const view& v, std::int64_t i, Number x) {
  switch (v.type) {
    case dtype::f32: v.as<float>()[i] = float(x); break;
    case dtype::bf16: v.as<bfloat16>()[i] = bfloat16(rounded_to_odd(x)); break;
    case dtype::f16: v.as<float16>()[i] = float16(rounded_to_odd(x)); break;
    case dtype::f64: v.as<double>()[i] = double(x); break;
    case dtype::i32: v.as<std::int32_t>()[i] = to_integer<std::int32_t>(x); break;
    case dtype::i64: v.as<std::int64_t>()[i] = to_integer<std::int64_t>(x); break;
    case dtype::u8: v.as<std::uint8_t>()[i] = to_integer<std::uint8_t>(x); break;
    case dtype::u16: v.as<std::uint16_t>()[i] = to_integer<std::uint16_t>(x); break;
    case dtype::u32: v.as<std::uint32_t>()[i] = to_integer<std::uint32_t>(x); break;
    case dtype::boolean: v.as<std::uint8_t>()[i] = x != 0 ? 1 : 0; break;
    case dtype::q8_0:
    case dtype::q4_0: break;  // formats of weights alone
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::cast, P, kernels::reference> {
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    for (reference::index i(y.dims); i.valid(); i.next()) {
      const auto from = i.in(x.strides), to = i.in(y.strides);
      if (x.type == dtype::i64) reference::store_cast(y, to, x.as<const std::int64_t>()[from]);
      else if (is_floating(x.type)) reference::store_cast(y, to, reference::load(x, from));
      else reference::store_cast(y, to, std::int64_t(reference::load(x, from)));
    }
  }
};

}  // namespace isotope::cpu
