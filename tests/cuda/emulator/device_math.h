#pragma once
// Arithmetic of the device language. Functions that the device only approximates are those of the host's library here.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>

namespace isotope_emulated {
template <class To, class From> To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
/// x - 2 round(x / 2): sin(pi x) and cos(pi x) have this period, and it is exact.
inline float half_turns(float x) { return x - 2.0f * std::nearbyint(x * 0.5f); }
}  // namespace isotope_emulated

inline unsigned __float_as_uint(float x) { return isotope_emulated::bits<unsigned>(x); }
inline int __float_as_int(float x) { return isotope_emulated::bits<int>(x); }
inline float __uint_as_float(unsigned x) { return isotope_emulated::bits<float>(x); }
inline float __int_as_float(int x) { return isotope_emulated::bits<float>(x); }
inline long long __double_as_longlong(double x) { return isotope_emulated::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return isotope_emulated::bits<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int k = 0; k < 32; ++k) y |= (x >> k & 1u) << (31 - k);
  return y;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(std::uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(std::int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return unsigned(((std::uint64_t(high) << 32 | low) << (n & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) { return unsigned((std::uint64_t(high) << 32 | low) >> (n & 31)); }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const std::uint64_t both = std::uint64_t(y) << 32 | x;
  unsigned r = 0;
  for (unsigned k = 0; k < 4; ++k) r |= unsigned(both >> (s >> 4 * k & 7u) * 8 & 0xff) << 8 * k;
  return r;
}

// Rounded once to nearest: never contracted, whatever the flags of the file are.
inline float __fadd_rn(float a, float b) {
  volatile float r = a + b;
  return r;
}
inline float __fsub_rn(float a, float b) {
  volatile float r = a - b;
  return r;
}
inline float __fmul_rn(float a, float b) {
  volatile float r = a * b;
  return r;
}
inline double __dadd_rn(double a, double b) {
  volatile double r = a + b;
  return r;
}
inline double __dmul_rn(double a, double b) {
  volatile double r = a * b;
  return r;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return float(1.0 / std::sqrt(double(x))); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return float(std::pow(10.0, double(x))); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline void __sincosf(float x, float* s, float* c) {
  *s = std::sin(x);
  *c = std::cos(x);
}
inline float __saturatef(float x) { return x >= 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }
inline float sinpif(float x) { return float(std::sin(std::numbers::pi * double(isotope_emulated::half_turns(x)))); }
inline float cospif(float x) { return float(std::cos(std::numbers::pi * double(isotope_emulated::half_turns(x)))); }
inline void sincospif(float x, float* s, float* c) {
  *s = sinpif(x);
  *c = cospif(x);
}

inline float __uint2float_rn(unsigned x) { return float(x); }
inline float __int2float_rn(int x) { return float(x); }
inline float __ll2float_rn(long long x) { return float(x); }
inline float __ull2float_rn(unsigned long long x) { return float(x); }
inline float __double2float_rn(double x) { return float(x); }
inline int __float2int_rn(float x) { return int(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return int(x); }
inline int __float2int_rd(float x) { return int(std::floor(x)); }
inline unsigned __float2uint_rn(float x) { return unsigned(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return unsigned(x); }

#define ISOTOPE_EMULATED_ORDER(T)                  \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
ISOTOPE_EMULATED_ORDER(int)
ISOTOPE_EMULATED_ORDER(unsigned)
ISOTOPE_EMULATED_ORDER(long)
ISOTOPE_EMULATED_ORDER(unsigned long)
ISOTOPE_EMULATED_ORDER(long long)
ISOTOPE_EMULATED_ORDER(unsigned long long)
#undef ISOTOPE_EMULATED_ORDER
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
