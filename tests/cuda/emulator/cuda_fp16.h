#pragma once
// f16 numbers of the device language, as far as kernels use them.
#include <cstdint>
#include <cstring>

struct __half {
  std::uint16_t bits;
};
inline __half __ushort_as_half(unsigned short x) { return {x}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline float __half2float(__half x) {
  _Float16 h;
  std::memcpy(&h, &x.bits, sizeof h);
  return float(h);
}
/// Rounds to nearest, ties to even. NaN becomes 0x7fff, as on the device.
inline __half __float2half_rn(float x) {
  if (x != x) return {0x7fff};
  const _Float16 h = _Float16(x);
  __half y;
  std::memcpy(&y.bits, &h, sizeof h);
  return y;
}
inline __half __float2half(float x) { return __float2half_rn(x); }
struct __half2 {
  __half x, y;
};
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
