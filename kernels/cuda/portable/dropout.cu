// Counter-based dropout: the four words of a Philox call decide on four elements. Bound by bytes in f32; in 16 bits the multiplications of
// Philox take more than half of the time of the bytes, so nothing else may cost much: a thread takes vectors of 16 bytes in a format that
// is known at compile time, and its calls share the keys of the rounds.
#include "dropout.h"

#include "../reference/philox.cuh"
#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

/// The number of element i among those of all devices.
__device__ inline std::uint64_t number_of(const dropout_operands& a, std::int64_t i) {
  return std::uint64_t(a.first + (a.run == 0 ? i : i / a.run * a.stride + i % a.run));
}

/// Any formats, alignment and numbers, four elements per thread.
extern "C" __global__ void __launch_bounds__(1024) dropout(const __grid_constant__ dropout_operands a) {
  const std::int64_t i = item();
  if (4 * i >= a.count) return;
  float v[4];
  load_flat<4>(a.x, i, a.count, a.x_type, false, v);
  const scalars& s = *pointer<const scalars>(a.scalars);
  random_words words;
  if (a.aligned) {
    words = philox(s.seed, number_of(a, 4 * i) / 4, std::uint32_t(s.counter), a.stream);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) words.word[k] = random_word(s, number_of(a, 4 * i + k), a.stream);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = a.all || words.word[k] > a.last ? v[k] * a.factor : 0.0f;
  store_flat<4>(a.y, i, a.count, a.y_type, false, v);
}

/// Whole aligned vectors of one format, whose elements have numbers that follow one another from a multiple of four on: a thread takes
/// VECTORS of them, which lie as far apart as the block has threads.
template <int T, int VECTORS> __device__ inline void drop_vectors(const dropout_operands& a) {
  constexpr int run = vector_elems<T>, calls = run / 4;
  const std::int64_t first = std::int64_t(blockIdx.x) * blockDim.x * VECTORS + threadIdx.x, end = a.count / run;
  uint4 x[VECTORS];
#pragma unroll
  for (int k = 0; k < VECTORS; ++k)
    if (first + k * std::int64_t(blockDim.x) < end) x[k] = pointer<const uint4>(a.x)[first + k * std::int64_t(blockDim.x)];
  const scalars& s = *pointer<const scalars>(a.scalars);
  const std::uint64_t seed = s.seed;
  std::uint64_t group[VECTORS];  // the first call of each vector
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) group[k] = number_of(a, (first + k * std::int64_t(blockDim.x)) * run) / 4;
  const std::uint32_t step = std::uint32_t(s.counter);
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    const std::int64_t at = first + k * std::int64_t(blockDim.x);
    if (at >= end) return;
    float v[run];
    unpack<T>(x[k], v);
#pragma unroll
    for (int call = 0; call < calls; ++call) {
      const random_words words = philox(seed, group[k] + std::uint32_t(call), step, a.stream);
#pragma unroll
      for (int j = 0; j < 4; ++j) v[4 * call + j] = words.word[j] > a.last ? v[4 * call + j] * a.factor : 0.0f;
    }
    pointer<uint4>(a.y)[at] = packed<T>(v);
  }
}
extern "C" __global__ void __launch_bounds__(1024) dropout_f32(const __grid_constant__ dropout_operands a) {
  drop_vectors<f32, dropout_vectors>(a);
}
extern "C" __global__ void __launch_bounds__(1024) dropout_bf16(const __grid_constant__ dropout_operands a) {
  drop_vectors<bf16, dropout_vectors>(a);
}
extern "C" __global__ void __launch_bounds__(1024) dropout_f16(const __grid_constant__ dropout_operands a) {
  drop_vectors<f16, dropout_vectors>(a);
}

}  // namespace isotope::cuda::gpu
