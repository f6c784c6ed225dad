#pragma once
// How small products are finished (matmul_small.cu, matmul_serial.cu): only the cases of finish_tile.cuh that have code of their own are here.
#include "device/early.cuh"
#include "native/matmul_mma.cuh"

namespace isotope::cuda::gpu {

/// Eight columns of some rows of a tile, which a thread finishes. What they need beside the sums is requested right after the operands.
template <class S> struct small_end {
  static constexpr int eights = S::n / 8, finishing = S::m * eights < S::threads ? S::m * eights : S::threads;  // threads
  static constexpr int step = finishing / eights, rows = S::m / step;
  static_assert(finishing % eights == 0 && rows * step == S::m);
  const gemm& g;
  int column, first, there;  // there: how many of the rows exist
  std::int64_t at;           // of the first element in y
  float bias[8];
  uint4 dense[rows];
  float old[rows][8];

  __device__ small_end(const gemm& arguments, int batch, int m0, int n0) : g(arguments) {
    column = int(threadIdx.x) % eights * 8;
    first = int(threadIdx.x) / eights;
    at = ((g.before + batch) * g.rows + m0 + first) * g.columns + n0 + column;
    const bool idle = int(threadIdx.x) >= finishing || n0 + column >= g.columns;
    there = idle ? 0 : (g.rows - m0 - first + step - 1) / step;
    if (!idle) load(n0);
  }
  __device__ void load(int n0) {
    switch (g.fast) {
      case case_add_f32: return load_as<case_add_f32>(n0);
      case case_bias: return load_as<case_bias>(n0);
      case case_residual: return load_as<case_residual>(n0);
      case case_bias_residual: return load_as<case_bias_residual>(n0);
      case case_bias_gelu: return load_as<case_bias_gelu>(n0);
      case case_bias_gelu_erf: return load_as<case_bias_gelu_erf>(n0);
      case case_gelu_grad: return load_as<case_gelu_grad>(n0);
      default: return;
    }
  }
  template <int Case> __device__ void load_as(int n0) {
    if constexpr (reads_bias<Case>) load_eight(g.operands[0].at, n0 + column, bf16, bias);
#pragma unroll
    for (int i = 0; i < rows; ++i)
      if (i < there) load_end_operands<Case>(g, at + std::int64_t(i * step) * g.columns, dense[i], old[i]);
  }
  /// sums: (shares, S::m, S::sums_line)
  __device__ void finish(const float* sums) {
    switch (g.fast) {
      case case_store_bf16: return finish_as<case_store_bf16>(sums);
      case case_store_f32: return finish_as<case_store_f32>(sums);
      case case_add_f32: return finish_as<case_add_f32>(sums);
      case case_bias: return finish_as<case_bias>(sums);
      case case_residual: return finish_as<case_residual>(sums);
      case case_bias_residual: return finish_as<case_bias_residual>(sums);
      case case_bias_gelu: return finish_as<case_bias_gelu>(sums);
      case case_bias_gelu_erf: return finish_as<case_bias_gelu_erf>(sums);
      case case_gelu_grad: return finish_as<case_gelu_grad>(sums);
      default: return;
    }
  }
  template <int Case> __device__ void finish_as(const float* sums) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (i >= there) return;
      float x[8];
#pragma unroll
      for (int k = 0; k < S::warps_k; ++k) {
        const float4 *p = reinterpret_cast<const float4*>(sums + (k * S::m + first + i * step) * S::sums_line + column), u = p[0], v = p[1];
        const float y[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
#pragma unroll
        for (int q = 0; q < 8; ++q) x[q] = k == 0 ? y[q] : plus(x[q], y[q]);
      }
      finish_sums<Case>(g, at + std::int64_t(i * step) * g.columns, x, bias, dense[i], old[i]);
    }
  }
};

}  // namespace isotope::cuda::gpu
