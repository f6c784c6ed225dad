#pragma once
/// Conversion to and from storage formats by integer operations, as in access.glsl, so that rounding is to nearest with ties to even on every device.
#include "../../../core/precision.hpp"
#include "numbers.hpp"

namespace isotope::vulkan::spirv {

constexpr word bf16_bits(const number& x) {
  const word u = floatBitsToUint(x);
  return choose((u & 0x7fffffffu) > 0x7f800000u, (u >> 16) | 0x40u, (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
constexpr number bf16_value(const word& bits) { return uintBitsToFloat(bits << 16); }

constexpr word f16_bits(const number& x) {
  const word u = floatBitsToUint(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu, exponent = a >> 23;
  const word mantissa = (a & 0x7fffffu) | 0x800000u, shift = (word(126u) - exponent) & 31u;  // below 2^-14: rounds at 2^-24
  const word kept = mantissa >> shift, rest = mantissa & ((word(1u) << shift) - 1u), half_way = word(1u) << (shift - 1u);
  const word odd_or_more = choose(rest == half_way, kept & 1u, word(0u));
  const word small = choose(exponent < 101u, word(0u), kept + choose(rest > half_way, word(1u), odd_or_more));
  const word rebased = a - 0x38000000u, normal = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  const word finite = choose(a < 0x38800000u, small, choose(a < 0x47800000u, normal, word(0x7c00u)));
  return sign | choose(a > 0x7f800000u, ((a >> 13) & 0x3ffu) | 0x7e00u, finite);
}
constexpr number f16_value(const word& bits) {
  const word sign = (bits & 0x8000u) << 16, e = (bits >> 10) & 0x1fu, m = bits & 0x3ffu;
  const word tiny = floatBitsToUint(number(m) * 0x1p-24f);
  const word finite = choose(e == 0u, tiny, ((e + 112u) << 23) | (m << 13));
  return uintBitsToFloat(sign | choose(e == 31u, (m << 13) | 0x7f800000u, finite));
}

/// x rounded to format t.
constexpr number rounded(const number& x, dtype t) {
  switch (t) {
    case dtype::bf16: return bf16_value(bf16_bits(x));
    case dtype::f16: return f16_value(f16_bits(x));
    case dtype::boolean: return choose((floatBitsToUint(x) & 0x7fffffffu) == 0u, number(0.0f), number(1.0f));
    default: return x;
  }
}

}  // namespace isotope::vulkan::spirv
