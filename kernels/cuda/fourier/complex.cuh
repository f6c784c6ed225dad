#pragma once
// Complex numbers as float2, and tables of roots of unity that the host calculates in f64.
#include "../device/access.cuh"
#include "../portable/fft.h"

namespace isotope::cuda::gpu {

__device__ inline float2 plus(float2 a, float2 b) { return float2{a.x + b.x, a.y + b.y}; }
__device__ inline float2 minus(float2 a, float2 b) { return float2{a.x - b.x, a.y - b.y}; }
__device__ inline float2 times(float2 a, float2 b) { return float2{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
__device__ inline float2 times(float a, float2 b) { return float2{a * b.x, a * b.y}; }
/// Swaps real and imaginary parts, which is i times the conjugate: a transform between swapped numbers runs in the other direction.
__device__ inline float2 swapped(float2 a, bool really) { return really ? float2{a.y, a.x} : a; }

/// e^(-2 pi i t / D), t < D.
__device__ inline float2 factor_of(const fft_table& table, std::uint32_t t) {
  const float2* const all = pointer<const float2>(table.at);
  if (table.bits == 0) return all[t];
  return times(all[t & ((1u << table.bits) - 1u)], all[(1u << table.bits) + (t >> table.bits)]);
}

/// Two numbers of a row of pairs. `aligned`: to the size of a pair.
__device__ inline float2 load_pair(std::uint64_t base, std::int64_t i, int type, bool aligned) {
  if (!aligned) return float2{load(base, 2 * i, type), load(base, 2 * i + 1, type)};
  if (type == f32) return pointer<const float2>(base)[i];
  const std::uint32_t u = pointer<const std::uint32_t>(base)[i];
  const std::uint16_t low = std::uint16_t(u), high = std::uint16_t(u >> 16);
  return type == bf16 ? float2{bf16_value(low), bf16_value(high)} : float2{f16_value(low), f16_value(high)};
}
__device__ inline void store_pair(std::uint64_t base, std::int64_t i, int type, bool aligned, float2 z) {
  if (!aligned) {
    store(base, 2 * i, type, z.x);
    store(base, 2 * i + 1, type, z.y);
  } else if (type == f32) {
    pointer<float2>(base)[i] = z;
  } else {
    const std::uint32_t low = type == bf16 ? bf16_bits(z.x) : f16_bits(z.x), high = type == bf16 ? bf16_bits(z.y) : f16_bits(z.y);
    pointer<std::uint32_t>(base)[i] = low | high << 16;
  }
}

/// Twice bin k, 0 < k < h, of 2 h real numbers whose even and odd ones have the transforms E and O: a = E + i O at k, b the same at h - k,
/// w = e^(-pi i k / h).
__device__ inline float2 bin_of(float2 a, float2 b, float2 w) {
  return plus(float2{a.x + b.x, a.y - b.y}, times(w, float2{a.y + b.y, b.x - a.x}));
}
/// 2 (E + i O) at k from bins k and h - k.
__device__ inline float2 half_of(float2 a, float2 b, float2 w) {
  const float2 odd = times(float2{w.x, -w.y}, float2{a.x - b.x, a.y + b.y});
  return float2{a.x + b.x - odd.y, a.y - b.y + odd.x};
}

/// Discrete transforms of 2, 4 and 8 points in place.
__device__ inline void dft(float2 (&v)[2]) {
  const float2 d = minus(v[0], v[1]);
  v[0] = plus(v[0], v[1]);
  v[1] = d;
}
__device__ inline void dft(float2 (&v)[4]) {
  const float2 a = plus(v[0], v[2]), b = minus(v[0], v[2]), c = plus(v[1], v[3]), d = minus(v[1], v[3]);
  const float2 turned{d.y, -d.x};
  v[0] = plus(a, c);
  v[1] = plus(b, turned);
  v[2] = minus(a, c);
  v[3] = minus(b, turned);
}
__device__ inline void dft(float2 (&v)[8]) {
  float2 even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
  dft(even);
  dft(odd);
  constexpr float half_root = 0.70710678118654752f;
  odd[1] = float2{half_root * (odd[1].x + odd[1].y), half_root * (odd[1].y - odd[1].x)};
  odd[2] = float2{odd[2].y, -odd[2].x};
  odd[3] = float2{half_root * (odd[3].y - odd[3].x), half_root * (-odd[3].x - odd[3].y)};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[k] = plus(even[k], odd[k]);
    v[k + 4] = minus(even[k], odd[k]);
  }
}

}  // namespace isotope::cuda::gpu
