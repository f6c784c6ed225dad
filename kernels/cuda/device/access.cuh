#pragma once
// Included by every kernel: elements in any format, by address, and the numbering of threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "axes.h"
#include "scalars.h"

namespace isotope::cuda::gpu {

/// The values of enum class dtype in core/precision.hpp.
inline constexpr int f32 = 0, bf16 = 1, f16 = 2, f64 = 3, i32 = 4, i64 = 5, u8 = 6, u16 = 7, u32 = 8, boolean = 9;

template <class T> __device__ inline T* pointer(std::uint64_t address) { return reinterpret_cast<T*>(address); }

/// The number of the thread in the grid.
__device__ inline std::int64_t item() { return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

#if !defined(ISOTOPE_EMULATED_DEVICE)
/// The dynamic shared memory of the block, aligned to 1,024 bytes.
__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char isotope_dynamic_shared[];
  return isotope_dynamic_shared;
}
#endif

__device__ inline float bf16_value(std::uint16_t bits) { return __uint_as_float(std::uint32_t(bits) << 16); }
/// Rounds to nearest, ties to even; NaN becomes 0x7fff.
__device__ inline std::uint16_t bf16_bits(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
/// Two numbers in a word, rounded by one instruction.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
__device__ inline float f16_value(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ inline std::uint16_t f16_bits(float x) { return __half_as_ushort(__float2half_rn(x)); }

/// Rounds x as format t stores it.
__device__ inline float rounded(float x, int t) {
  if (t == bf16) return __uint_as_float(bf16_pair(0.0f, x));
  if (t == f16) return f16_value(f16_bits(x));
  if (t == boolean) return x != 0.0f ? 1.0f : 0.0f;
  return x;
}
/// Element i of the tensor at `base` as f32, for floating-point formats and booleans.
__device__ inline float load(std::uint64_t base, std::int64_t i, int t) {
  if (t == f32) return pointer<const float>(base)[i];
  if (t == bf16) return bf16_value(pointer<const std::uint16_t>(base)[i]);
  if (t == f16) return f16_value(pointer<const std::uint16_t>(base)[i]);
  return pointer<const std::uint8_t>(base)[i] != 0 ? 1.0f : 0.0f;
}
__device__ inline void store(std::uint64_t base, std::int64_t i, int t, float x) {
  if (t == f32) pointer<float>(base)[i] = x;
  else if (t == bf16) pointer<std::uint16_t>(base)[i] = bf16_bits(x);
  else if (t == f16) pointer<std::uint16_t>(base)[i] = f16_bits(x);
  else pointer<std::uint8_t>(base)[i] = x != 0.0f ? 1 : 0;
}

/// The offset of element i in row-major order over axes [first, end).
__device__ inline std::int64_t offset_of(std::int64_t i, const axes& a, int first, int end) {
  std::int64_t at = 0;
  for (int k = end; k-- > first;) {
    at += i % a.dims[k] * a.strides[k];
    i /= a.dims[k];
  }
  return at;
}
__device__ inline std::int64_t offset_of(std::int64_t i, const axes& a) { return offset_of(i, a, 0, a.rank); }

}  // namespace isotope::cuda::gpu
