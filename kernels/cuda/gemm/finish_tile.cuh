#pragma once
// Finishes a tile whose sums are in shared memory. The cases of training in bf16 have code of their own, which loads the operands of
// several rows before it needs them; every other case goes row by row through finish_eight.
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

template <int Case> inline constexpr bool ends_in_gelu = Case == case_bias_gelu || Case == case_bias_gelu_erf;

/// Applies the last instruction of a body to eight rounded values. `dense`: eight values of bf16 of an operand that is dense like y.
template <int Case> __device__ inline void finish_case(float (&x)[8], const float (&bias)[8], const uint4& dense) {
  const std::uint32_t w[4] = {dense.x, dense.y, dense.z, dense.w};
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    const float o = q % 2 == 0 ? __uint_as_float(w[q / 2] << 16) : __uint_as_float(w[q / 2] & 0xffff0000u);
    if constexpr (Case == case_residual || Case == case_bias_residual) x[q] = plus(x[q], o);
    if constexpr (Case == case_bias || ends_in_gelu<Case>) x[q] = plus(x[q], bias[q]);
    if constexpr (Case == case_gelu_grad) x[q] = result_of(55u, o, x[q], 0.0f, 0.0f);
  }
}

template <int Case> inline constexpr bool reads_dense = Case == case_residual || Case == case_bias_residual || Case == case_gelu_grad;
template <int Case> inline constexpr bool reads_bias = Case == case_bias || Case == case_bias_residual || ends_in_gelu<Case>;

/// Loads what depends on the row; `at`: the index of the first of the eight elements in y.
template <int Case> __device__ inline void load_end_operands(const gemm& g, std::int64_t at, uint4& dense, float (&old)[8]) {
  if constexpr (reads_dense<Case>) dense = pointer<const uint4>(g.operands[Case == case_bias_residual ? 1 : 0].at)[at / 8];
  if constexpr (Case == case_add_f32) load_eight(g.y, at, f32, old);
}
/// Finishes eight sums and stores the result.
template <int Case>
__device__ inline void finish_sums(const gemm& g, std::int64_t at, float (&x)[8], const float (&bias)[8], const uint4& dense,
                                   const float (&old)[8]) {
  if constexpr (Case != case_partial) {
#pragma unroll
    for (int q = 0; q < 8; ++q) x[q] = times(g.alpha, x[q]);
  }
  if constexpr (Case == case_partial || Case == case_store_f32) {
    store_eight(g.y, at, f32, x);
  } else if constexpr (Case == case_add_f32) {
#pragma unroll
    for (int q = 0; q < 8; ++q) x[q] = plus(x[q], old[q]);
    store_eight(g.y, at, f32, x);
  } else if constexpr (Case == case_store_bf16) {
    store_eight(g.y, at, bf16, x);
  } else {
    round_eight(x, bf16);
    if constexpr (Case == case_bias_residual) {
      const uint4 none{0, 0, 0, 0};
      finish_case<case_bias>(x, bias, none);
      round_eight(x, bf16);
    }
    finish_case<Case>(x, bias, dense);
    if constexpr (ends_in_gelu<Case>) {
      round_eight(x, bf16);
      if (g.chain[0].store >= 0) store_eight(g.out[g.chain[0].store], at, bf16, x);
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(Case == case_bias_gelu ? 54u : 56u, x[q], 0.0f, 0.0f, 0.0f);
    }
    store_eight(g.out[g.chain[g.steps - 1].store], at, bf16, x);
  }
}

/// The rows of a tile, (Rows, Line) in shared memory, of which a thread has eight columns.
template <int Case, int Threads, int Rows, int Columns, int Line>
__device__ inline void finish_rows(const gemm& g, int batch, int part, int m0, int n0, const float* sums) {
  constexpr int eights = Columns / 8, step = Threads / eights, ahead = 4;
  static_assert(Threads % eights == 0 && Rows % (step * ahead) == 0);
  const int column = int(threadIdx.x) % eights * 8, first = int(threadIdx.x) / eights;
  if (n0 + column >= g.columns) return;
  const std::int64_t at0 = ((g.before + batch) * g.rows + m0) * g.columns + n0 + column + (Case == case_partial ? part * g.elements : 0);
  float bias[8] = {};
  if constexpr (reads_bias<Case>) load_eight(g.operands[0].at, n0 + column, bf16, bias);
#pragma unroll 1
  for (int r = first; r < Rows && m0 + r < g.rows; r += step * ahead) {
    uint4 dense[ahead];
    float old[ahead][8];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      dense[i] = uint4{0, 0, 0, 0};
      if (m0 + r + i * step < g.rows) load_end_operands<Case>(g, at0 + std::int64_t(r + i * step) * g.columns, dense[i], old[i]);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (m0 + r + i * step >= g.rows) continue;
      const float4 *p = reinterpret_cast<const float4*>(sums + (r + i * step) * Line + column), u = p[0], v = p[1];
      float x[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
      finish_sums<Case>(g, at0 + std::int64_t(r + i * step) * g.columns, x, bias, dense[i], old[i]);
    }
  }
}

/// Finishes all sums of a tile.
template <int Threads, int Rows, int Columns, int Line>
__device__ inline void finish_tile(const gemm& g, int batch, int part, int m0, int n0, const float* sums) {
  switch (g.fast) {
    case case_partial: return finish_rows<case_partial, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_store_bf16: return finish_rows<case_store_bf16, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_store_f32: return finish_rows<case_store_f32, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_add_f32: return finish_rows<case_add_f32, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_bias: return finish_rows<case_bias, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_residual: return finish_rows<case_residual, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_bias_residual: return finish_rows<case_bias_residual, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_bias_gelu: return finish_rows<case_bias_gelu, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_bias_gelu_erf: return finish_rows<case_bias_gelu_erf, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    case case_gelu_grad: return finish_rows<case_gelu_grad, Threads, Rows, Columns, Line>(g, batch, part, m0, n0, sums);
    default: break;
  }
#pragma unroll 1
  for (int e = int(threadIdx.x); e < Rows * Columns / 8; e += Threads) {
    const int r = e / (Columns / 8), c = e % (Columns / 8);
    if (m0 + r >= g.rows || n0 + 8 * c >= g.columns) continue;
    const float4 *p = reinterpret_cast<const float4*>(sums + r * Line + 8 * c), u = p[0], v = p[1];
    float z[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
    finish_eight(g, batch, part, m0 + r, n0 + 8 * c, z, g.columns - n0 - 8 * c < 8 ? g.columns - n0 - 8 * c : 8);
  }
}

}  // namespace isotope::cuda::gpu
