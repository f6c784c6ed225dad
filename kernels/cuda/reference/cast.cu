// Converts between formats, each number rounded once; one element per thread. Bound by bytes.
#include "cast.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

/// A number of any format: an integer, or a number that f64 holds.
struct any_number {
  bool integer, negative_nan, nan;
  std::int64_t whole;
  double value;
};

__device__ inline any_number of_float(double x, bool negative) { return {false, negative, x != x, 0, x}; }
__device__ inline any_number of_integer(std::int64_t x) { return {true, false, false, x, 0}; }
__device__ inline any_number read_number(std::uint64_t base, std::int64_t i, int t) {
  switch (t) {
    case f64: return of_float(pointer<const double>(base)[i], pointer<const std::int64_t>(base)[i] < 0);
    case i32: return of_integer(pointer<const std::int32_t>(base)[i]);
    case i64: return of_integer(pointer<const std::int64_t>(base)[i]);
    case u8: return of_integer(pointer<const std::uint8_t>(base)[i]);
    case u16: return of_integer(pointer<const std::uint16_t>(base)[i]);
    case u32: return of_integer(pointer<const std::uint32_t>(base)[i]);
    case boolean: return of_integer(pointer<const std::uint8_t>(base)[i] != 0 ? 1 : 0);
    default: {
      const float x = load(base, i, t);
      return of_float(double(x), (__float_as_uint(x) >> 31) != 0);
    }
  }
}

/// x in f64; where it needs more than 53 bits, rounded to 24 bits or more with an odd last bit, so that rounding it again gives x rounded
/// once.
__device__ inline double to_odd(std::int64_t x) {
  const std::uint64_t magnitude = x < 0 ? std::uint64_t(0) - std::uint64_t(x) : std::uint64_t(x);
  const std::uint64_t low = magnitude & 0x7fffffffu;
  const std::uint64_t kept = magnitude >> 53 == 0 ? magnitude : (magnitude - low) | (low != 0 ? 0x40000000u : 0u);
  return x < 0 ? -double(kept) : double(kept);
}
/// x in f32 with an odd last bit if it is inexact.
__device__ inline float to_odd(double x) {
  const float nearest = float(x);
  if (double(nearest) == x || x != x) return nearest;
  std::uint32_t bits = __float_as_uint(nearest);
  if ((nearest < 0.0f ? -double(nearest) : double(nearest)) > (x < 0 ? -x : x)) --bits;
  return __uint_as_float(bits | 1u);
}

/// Toward zero, the nearest end out of range, NaN as 0. The ends are exact in f64, except 2^63 - 1, which becomes 2^63.
__device__ inline std::int64_t integer_of(const any_number& n, std::int64_t least, std::int64_t most) {
  if (n.integer) return n.whole < least ? least : n.whole > most ? most : n.whole;
  if (n.nan) return 0;
  if (n.value <= double(least)) return least;
  return n.value >= double(most) ? most : std::int64_t(n.value);
}
/// NaN with its sign: the bits of a format whose positive quiet NaN is given.
__device__ inline std::uint64_t nan_of(const any_number& n, std::uint64_t quiet, int sign) {
  return quiet | (n.negative_nan ? std::uint64_t(1) << sign : 0);
}
__device__ inline void write_number(std::uint64_t base, std::int64_t i, int t, const any_number& n) {
  switch (t) {
    case f64:
      if (n.nan) pointer<std::uint64_t>(base)[i] = nan_of(n, std::uint64_t(0x7ff8) << 48, 63);
      else pointer<double>(base)[i] = n.integer ? double(n.whole) : n.value;
      return;
    case f32:
      if (n.nan) pointer<std::uint32_t>(base)[i] = std::uint32_t(nan_of(n, 0x7fc00000u, 31));
      else pointer<float>(base)[i] = n.integer ? float(n.whole) : float(n.value);
      return;
    case bf16:
    case f16: {
      const float x = to_odd(n.integer ? to_odd(n.whole) : n.value);
      const std::uint16_t bits = t == bf16 ? bf16_bits(x) : f16_bits(x);
      pointer<std::uint16_t>(base)[i] = n.nan ? std::uint16_t(nan_of(n, t == bf16 ? 0x7fc0u : 0x7e00u, 15)) : bits;
      return;
    }
    case i32: pointer<std::int32_t>(base)[i] = std::int32_t(integer_of(n, -2147483647 - 1, 2147483647)); return;
    case i64: pointer<std::int64_t>(base)[i] = integer_of(n, -9223372036854775807 - 1, 9223372036854775807); return;
    case u8: pointer<std::uint8_t>(base)[i] = std::uint8_t(integer_of(n, 0, 255)); return;
    case u16: pointer<std::uint16_t>(base)[i] = std::uint16_t(integer_of(n, 0, 65535)); return;
    case u32: pointer<std::uint32_t>(base)[i] = std::uint32_t(integer_of(n, 0, 4294967295)); return;
    default: pointer<std::uint8_t>(base)[i] = (n.integer ? n.whole != 0 : n.value != 0.0) ? 1 : 0; return;
  }
}

extern "C" __global__ void __launch_bounds__(1024) reference_cast(const __grid_constant__ cast_arguments a) {
  const std::int64_t i = item();
  if (i < a.count) write_number(a.y, i, a.y_type, read_number(a.x.at, offset_of(i, a.x.axes), a.x.type));
}

}  // namespace isotope::cuda::gpu
