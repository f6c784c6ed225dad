#pragma once
// bf16 numbers of the device language, as far as kernels use them.
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return {x}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline float __bfloat162float(__nv_bfloat16 x) {
  const std::uint32_t u = std::uint32_t(x.bits) << 16;
  float y;
  std::memcpy(&y, &u, sizeof y);
  return y;
}
/// Rounds to nearest, ties to even. NaN becomes 0x7fff, as on the device.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  if (x != x) return {0x7fff};
  return {std::uint16_t((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
