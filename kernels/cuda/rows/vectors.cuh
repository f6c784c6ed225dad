#pragma once
// Runs of adjacent elements in registers, moved with accesses of up to 16 bytes, and converted between formats.
#include "../device/access.cuh"

namespace isotope::cuda::gpu {

template <int T> inline constexpr int element_bytes = T == f32 ? 4 : 2;
/// Elements of format T in 16 bytes.
template <int T> inline constexpr int vector_elems = 16 / element_bytes<T>;

/// Two numbers rounded to a 16-bit format, the first in the low half.
template <int T> __device__ inline std::uint32_t pair_bits(float low, float high) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  if constexpr (T == bf16) return bf16_bits(low) | std::uint32_t(bf16_bits(high)) << 16;
  else return f16_bits(low) | std::uint32_t(f16_bits(high)) << 16;
#else
  std::uint32_t bits;
  if constexpr (T == bf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#endif
}
template <int T> __device__ inline float low_value(std::uint32_t pair) {
  if constexpr (T == bf16) return __uint_as_float(pair << 16);
  else return f16_value(std::uint16_t(pair));
}
template <int T> __device__ inline float high_value(std::uint32_t pair) {
  if constexpr (T == bf16) return __uint_as_float(pair & 0xffff0000u);
  else return f16_value(std::uint16_t(pair >> 16));
}

/// Element i of a tensor in format T.
template <int T> __device__ inline float get(std::uint64_t base, std::int64_t i) {
  if constexpr (T == f32) return pointer<const float>(base)[i];
  else if constexpr (T == bf16) return bf16_value(pointer<const std::uint16_t>(base)[i]);
  else return f16_value(pointer<const std::uint16_t>(base)[i]);
}
template <int T> __device__ inline void put(std::uint64_t base, std::int64_t i, float x) {
  if constexpr (T == f32) pointer<float>(base)[i] = x;
  else pointer<std::uint16_t>(base)[i] = std::uint16_t(pair_bits<T>(x, 0.0f));
}

/// The 16 bytes at an aligned address as numbers, and back.
template <int T> __device__ inline void unpack(uint4 u, float (&v)[vector_elems<T>]) {
  const std::uint32_t words[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if constexpr (T == f32) {
      v[k] = __uint_as_float(words[k]);
    } else {
      v[2 * k] = low_value<T>(words[k]);
      v[2 * k + 1] = high_value<T>(words[k]);
    }
}
template <int T> __device__ inline uint4 packed(const float (&v)[vector_elems<T>]) {
  if constexpr (T == f32) return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3]));
  else return make_uint4(pair_bits<T>(v[0], v[1]), pair_bits<T>(v[2], v[3]), pair_bits<T>(v[4], v[5]), pair_bits<T>(v[6], v[7]));
}

/// Computes anew in each turn of a loop what follows from u, so that registers hold u alone.
__device__ inline void keep_packed(uint4& u) {
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" : "+r"(u.x), "+r"(u.y), "+r"(u.z), "+r"(u.w));
#endif
}

/// Elements i to i + N - 1 of a tensor in format T; they are aligned to their size, or to 16 bytes if they are more.
template <int T, int N> __device__ inline void load_run(std::uint64_t base, std::int64_t i, float (&v)[N]) {
  const std::uint64_t at = base + std::uint64_t(i) * element_bytes<T>;
  constexpr int bytes = N * element_bytes<T>;
  static_assert(bytes == 8 || bytes % 16 == 0);
  if constexpr (bytes == 8) {
    const uint2 u = *pointer<const uint2>(at);
    v[0] = low_value<T>(u.x);
    v[1] = high_value<T>(u.x);
    v[2] = low_value<T>(u.y);
    v[3] = high_value<T>(u.y);
  } else {
#pragma unroll
    for (int part = 0; part < bytes / 16; ++part) {
      float some[vector_elems<T>];
      unpack<T>(pointer<const uint4>(at)[part], some);
#pragma unroll
      for (int k = 0; k < vector_elems<T>; ++k) v[part * vector_elems<T> + k] = some[k];
    }
  }
}
template <int T, int N> __device__ inline void store_run(std::uint64_t base, std::int64_t i, const float (&v)[N]) {
  const std::uint64_t at = base + std::uint64_t(i) * element_bytes<T>;
  constexpr int bytes = N * element_bytes<T>;
  static_assert(bytes == 8 || bytes % 16 == 0);
  if constexpr (bytes == 8) {
    *pointer<uint2>(at) = make_uint2(pair_bits<T>(v[0], v[1]), pair_bits<T>(v[2], v[3]));
  } else {
#pragma unroll
    for (int part = 0; part < bytes / 16; ++part) {
      float some[vector_elems<T>];
#pragma unroll
      for (int k = 0; k < vector_elems<T>; ++k) some[k] = v[part * vector_elems<T> + k];
      pointer<uint4>(at)[part] = packed<T>(some);
    }
  }
}
/// The same in a format that is known at run time.
template <int N> __device__ inline void load_run(std::uint64_t base, std::int64_t i, int type, float (&v)[N]) {
  if (type == f32) load_run<f32, N>(base, i, v);
  else if (type == bf16) load_run<bf16, N>(base, i, v);
  else load_run<f16, N>(base, i, v);
}
template <int N> __device__ inline void store_run(std::uint64_t base, std::int64_t i, int type, const float (&v)[N]) {
  if (type == f32) store_run<f32, N>(base, i, v);
  else if (type == bf16) store_run<bf16, N>(base, i, v);
  else store_run<f16, N>(base, i, v);
}

/// The items of a flat region that a thread takes: N elements from N i on; the last run may be shorter. Tensors are aligned if `wide`.
template <int N>
__device__ inline void load_flat(std::uint64_t base, std::int64_t i, std::int64_t count, int type, bool wide, float (&v)[N]) {
  if (wide && N * i + N <= count) return load_run<N>(base, N * i, type, v);
#pragma unroll
  for (int k = 0; k < N; ++k) v[k] = N * i + k < count ? load(base, N * i + k, type) : 0.0f;
}
template <int N>
__device__ inline void store_flat(std::uint64_t base, std::int64_t i, std::int64_t count, int type, bool wide, const float (&v)[N]) {
  if (wide && N * i + N <= count) return store_run<N>(base, N * i, type, v);
#pragma unroll
  for (int k = 0; k < N; ++k)
    if (N * i + k < count) store(base, N * i + k, type, v[k]);
}

}  // namespace isotope::cuda::gpu
