#pragma once
// Reference kernels calculate in f64: every operand is exact in it, and results are rounded to f32 and from there to their format.
#include <math.h>

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

__device__ inline double load_f64(std::uint64_t base, std::int64_t i, int t) { return double(load(base, i, t)); }
__device__ inline void store_f64(std::uint64_t base, std::int64_t i, int t, double x) { store(base, i, t, float(x)); }
__device__ inline double infinity_f64() { return double(__uint_as_float(0x7f800000u)); }

}  // namespace isotope::cuda::gpu
