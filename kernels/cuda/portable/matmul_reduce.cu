// flags: -fmad=false
//
// The second half of split-K: a thread adds the parts of eight adjacent sums, in the order of K, and finishes them. Bound by bytes.
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

/// The partial sums are in f32 at g.a.at, (parts, elements).
extern "C" __global__ void __launch_bounds__(1024) matmul_reduce(const __grid_constant__ gemm g) {
  const std::int64_t eights = (std::int64_t(g.columns) + 7) / 8, i = item(), row = i / eights, n = i % eights * 8;
  if (row >= std::int64_t(g.batches) * g.rows) return;
  const int batch = int(row / g.rows), valid = int(g.columns - n < 8 ? g.columns - n : 8);
  const std::int64_t at = (g.before * g.rows + row) * g.columns + n;
  float x[8] = {};
  for (int p = 0; p < g.parts; ++p) {
    float y[8] = {};
    if (g.columns % 8 == 0 && g.a.at % 16 == 0) {
      load_eight(g.a.at, p * g.elements + at, f32, y);
    } else {
#pragma unroll
      for (int q = 0; q < 8; ++q)
        if (q < valid) y[q] = pointer<const float>(g.a.at)[p * g.elements + at + q];
    }
#pragma unroll
    for (int q = 0; q < 8; ++q) x[q] = p == 0 ? y[q] : plus(x[q], y[q]);
  }
  finish_eight(g, batch, 0, row % g.rows, n, x, valid);
}

}  // namespace isotope::cuda::gpu
