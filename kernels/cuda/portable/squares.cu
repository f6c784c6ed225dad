// The norm of a flat region in two launches: blocks add the squares of ranges of it, then one block adds the ranges in order and takes
// the root. Bound by bytes. Sums are f64, in which a square of f32 is exact and does not overflow: a thread adds its squares one after
// another, and a tree adds the threads.
#include "update.h"

#include "../device/scalars.h"
#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

/// The sum over the threads of a block, at thread 0.
__device__ inline double over_block(double x) {
  __shared__ double parts[1024];
  parts[threadIdx.x] = x;
  __syncthreads();
  for (int half = int(blockDim.x) / 2; half > 0; half /= 2) {
    if (int(threadIdx.x) < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  return parts[0];
}

template <int T> __device__ inline void squares(const squares_operands& a) {
  constexpr int run = vector_elems<T>, flight = 4;
  const std::int64_t first = blockIdx.x * a.each, limit = first + a.each, end = limit < a.count ? limit : a.count;
  const int step = int(blockDim.x) * run;
  double sums[2] = {};
  const auto add = [&](const float(&v)[run]) {
#pragma unroll
    for (int j = 0; j < run; ++j) sums[j % 2] = fma(double(v[j]), double(v[j]), sums[j % 2]);
  };
  std::int64_t i = first + std::int64_t(threadIdx.x) * run;
  if (a.wide)
    for (; i + (flight - 1) * step + run <= end; i += flight * step) {
      float v[flight][run];
#pragma unroll
      for (int f = 0; f < flight; ++f) load_run<T, run>(a.x, i + f * step, v[f]);
#pragma unroll
      for (int f = 0; f < flight; ++f) add(v[f]);
    }
  for (; i < end; i += step) {
    float v[run];
#pragma unroll
    for (int j = 0; j < run; ++j) v[j] = i + j < end ? get<T>(a.x, i + j) : 0.0f;
    add(v);
  }
  const double sum = over_block(sums[0] + sums[1]);
  if (threadIdx.x == 0) pointer<double>(a.parts)[blockIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(256) squares_f32(const __grid_constant__ squares_operands a) { squares<f32>(a); }
extern "C" __global__ void __launch_bounds__(256) squares_bf16(const __grid_constant__ squares_operands a) { squares<bf16>(a); }
extern "C" __global__ void __launch_bounds__(256) squares_f16(const __grid_constant__ squares_operands a) { squares<f16>(a); }

/// The root of the sum of all parts, times the scale of the gradient.
extern "C" __global__ void __launch_bounds__(1024) norm_of_squares(const __grid_constant__ squares_operands a) {
  double sum = 0;
  for (int i = int(threadIdx.x); i < a.blocks; i += int(blockDim.x)) sum += pointer<const double>(a.parts)[i];
  sum = over_block(sum);
  if (threadIdx.x == 0) pointer<float>(a.norm)[0] = float(sqrt(sum) * double(pointer<const scalars>(a.scalars)->gradient_scale));
}

}  // namespace isotope::cuda::gpu
