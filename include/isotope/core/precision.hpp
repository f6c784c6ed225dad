#pragma once
/// Number formats: storage types, their conversions, and the precisions a program can be compiled for.
#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace isotope {

/// bfloat16: the upper half of an IEEE f32. Conversion rounds to nearest, ties to even; NaN stays NaN (quiet).
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const bool nan = (u & 0x7fff'ffffu) > 0x7f80'0000u;
    bits = std::uint16_t(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t(bits) << 16); }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }
};

/// IEEE binary16. Conversion rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN (quiet).
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() = default;
  constexpr explicit float16(float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    const auto sign = std::uint16_t((u >> 16) & 0x8000u);
    const std::uint32_t a = u & 0x7fff'ffffu;
    if (a > 0x7f80'0000u) {
      bits = std::uint16_t(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    } else if (a >= 0x4780'0000u) {  // 65536 and more
      bits = std::uint16_t(sign | 0x7c00u);
    } else if (a < 0x3880'0000u) {  // below the smallest normal, 2^-14: round at 2^-24
      const std::uint32_t exponent = a >> 23;
      if (exponent < 101) {  // below 2^-26: rounds to zero
        bits = sign;
      } else {
        const std::uint32_t mantissa = (a & 0x7f'ffffu) | 0x80'0000u, shift = 126 - exponent;
        const std::uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
        bits = std::uint16_t(sign | (kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u)));
      }
    } else {
      const std::uint32_t rebased = a - 0x3800'0000u;  // exponent bias 127 -> 15
      bits = std::uint16_t(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
    }
  }
  constexpr explicit operator float() const {
    const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16, e = (bits >> 10) & 0x1fu, m = bits & 0x3ffu;
    if (e == 31) return std::bit_cast<float>(sign | 0x7f80'0000u | (m << 13));
    if (e != 0) return std::bit_cast<float>(sign | ((e + 112) << 23) | (m << 13));
    const float tiny = float(m) * 0x1p-24f;
    return sign != 0 ? -tiny : tiny;
  }
  friend constexpr bool operator==(float16 a, float16 b) { return float(a) == float(b); }
};

/// The format of one tensor's elements. q8_0 and q4_0 are for weights of inference programs alone: core/quantized.hpp.
enum class dtype : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8, u16, u32, boolean, q8_0, q4_0 };
inline constexpr int dtype_count = 12;

/// Whether elements are stored in blocks that share a scale.
constexpr bool in_blocks(dtype t) { return t == dtype::q8_0 || t == dtype::q4_0; }
/// The bytes of an element. Where elements are in blocks, it is 1: such tensors are allocated and addressed in bytes.
constexpr std::int64_t size_of(dtype t) {
  constexpr std::int8_t bytes[dtype_count] = {4, 2, 2, 8, 4, 8, 1, 2, 4, 1, 1, 1};
  return bytes[int(t)];
}
constexpr std::string_view name_of(dtype t) {
  constexpr std::string_view names[dtype_count] = {"f32", "bf16", "f16", "f64", "i32", "i64", "u8", "u16", "u32", "bool", "q8_0", "q4_0"};
  return names[int(t)];
}
constexpr bool is_floating(dtype t) { return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16 || t == dtype::f64; }

/// The precision that a program is compiled for. Parameters and activations are `storage`; sums, statistics, losses and weight gradients are `accum`.
namespace precision {
struct f32 {
  using storage = float;
  using accum = float;
  static constexpr std::string_view name = "f32";
  static constexpr dtype type = dtype::f32, accum_type = dtype::f32;
};
struct bf16 {
  using storage = bfloat16;
  using accum = float;
  static constexpr std::string_view name = "bf16";
  static constexpr dtype type = dtype::bf16, accum_type = dtype::f32;
};
struct f64 {  // for checks, on the cpu
  using storage = double;
  using accum = double;
  static constexpr std::string_view name = "f64";
  static constexpr dtype type = dtype::f64, accum_type = dtype::f64;
};
}  // namespace precision

/// Memory holds `P::storage`; sums run in `P::accum`, which is at least as wide.
template <class P>
concept HasStorage = requires { typename P::storage; };
template <class P>
concept HasAccum = requires {
  typename P::accum;
  requires std::floating_point<typename P::accum>;
};
template <class P>
concept HasPrecisionName = requires {
  { P::name } -> std::convertible_to<std::string_view>;
};
template <class P>
concept HasTypes = requires {
  { P::type } -> std::convertible_to<dtype>;
  { P::accum_type } -> std::convertible_to<dtype>;
};
template <class P>
concept Precision = HasStorage<P> && HasAccum<P> && HasPrecisionName<P> && HasTypes<P>;

static_assert(Precision<precision::bf16>);
static_assert(!Precision<float>, "a bare C++ type is not a precision: it says nothing of accumulation");

/// The accumulation format of a program precision: f32 for f32 and bf16, f64 for f64.
constexpr dtype accum_of(dtype program) { return program == dtype::f64 ? dtype::f64 : dtype::f32; }

static_assert(bfloat16(1.0f).bits == 0x3f80 && float(bfloat16(0x1.01p0f)) == 0x1p0f && float(bfloat16(0x1.03p0f)) == 0x1.04p0f);
static_assert(float16(65504.0f).bits == 0x7bff && float16(65520.0f).bits == 0x7c00 && float16(0x1p-24f).bits == 1);

}  // namespace isotope
