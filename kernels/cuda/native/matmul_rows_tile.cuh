#pragma once
// How matmul_rows_tile.cu and matmul_rows_hopper.cu finish sums.
#include "gemm/finish_tile.cuh"

namespace isotope::cuda::gpu {

/// Finishes eight columns of a row by the case of g; `dense`, `bias`: what they need.
__device__ inline void finish_eight_by_case(const gemm& g, std::int64_t at, float (&x)[8], const float (&bias)[8], const uint4& dense) {
  const float old[8] = {};
  switch (g.fast) {
    case case_store_bf16: return finish_sums<case_store_bf16>(g, at, x, bias, dense, old);
    case case_bias: return finish_sums<case_bias>(g, at, x, bias, dense, old);
    case case_residual: return finish_sums<case_residual>(g, at, x, bias, dense, old);
    case case_bias_residual: return finish_sums<case_bias_residual>(g, at, x, bias, dense, old);
    case case_bias_gelu: return finish_sums<case_bias_gelu>(g, at, x, bias, dense, old);
    default: return;
  }
}

}  // namespace isotope::cuda::gpu
