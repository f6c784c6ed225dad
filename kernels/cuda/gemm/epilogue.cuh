#pragma once
// Finishes the sums of a matmul: scales and rounds them, and stores them or runs the fused body. Bodies that are chains (bias, bias and
// residual, bias and GELU, the gradient of GELU) work on eight columns in registers with 16-byte accesses; other bodies go through the
// interpreter, element by element. Fused results are the bits of separate ops: every instruction rounds to its format, and nothing is
// contracted.
#include "device/body.cuh"
#include "gemm/gemm.h"

namespace isotope::cuda::gpu {

__device__ inline float times(float a, float b) { return (formulas::number(a) * formulas::number(b)).value; }
__device__ inline float plus(float a, float b) { return (formulas::number(a) + formulas::number(b)).value; }

/// Rounds x as format t stores it.
__device__ inline void round_eight(float (&x)[8], int t) {
  if (t == f32) return;
  if (t == bf16) {
#pragma unroll
    for (int q = 0; q < 8; q += 2) {
      const std::uint32_t w = bf16_pair(x[q], x[q + 1]);
      x[q] = __uint_as_float(w << 16);
      x[q + 1] = __uint_as_float(w & 0xffff0000u);
    }
    return;
  }
#pragma unroll
  for (int q = 0; q < 8; ++q) x[q] = rounded(x[q], t);
}

/// Eight adjacent elements from element i on, which is a multiple of eight from an aligned address.
__device__ inline void load_eight(std::uint64_t base, std::int64_t i, int type, float (&x)[8]) {
  if (type == f32) {
    const float4* p = pointer<const float4>(base) + i / 4;
    const float4 u = p[0], v = p[1];
    x[0] = u.x, x[1] = u.y, x[2] = u.z, x[3] = u.w, x[4] = v.x, x[5] = v.y, x[6] = v.z, x[7] = v.w;
  } else if (type == bf16) {
    const uint4 u = pointer<const uint4>(base)[i / 8];
    const std::uint32_t w[4] = {u.x, u.y, u.z, u.w};
    for (int q = 0; q < 4; ++q) {
      x[2 * q] = __uint_as_float(w[q] << 16);
      x[2 * q + 1] = __uint_as_float(w[q] & 0xffff0000u);
    }
  } else {
    for (int q = 0; q < 8; ++q) x[q] = load(base, i + q, type);
  }
}
__device__ inline void store_eight(std::uint64_t base, std::int64_t i, int type, const float (&x)[8]) {
  if (type == f32) {
    float4* p = pointer<float4>(base) + i / 4;
    p[0] = float4{x[0], x[1], x[2], x[3]};
    p[1] = float4{x[4], x[5], x[6], x[7]};
  } else if (type == bf16) {
    std::uint32_t w[4];
    for (int q = 0; q < 4; ++q) w[q] = bf16_pair(x[2 * q], x[2 * q + 1]);
    pointer<uint4>(base)[i / 8] = uint4{w[0], w[1], w[2], w[3]};
  } else {
    for (int q = 0; q < 8; ++q) store(base, i + q, type, x[q]);
  }
}

__device__ inline std::int64_t batch_offset(std::int32_t batch, std::int32_t inner, std::int64_t outer_stride, std::int64_t inner_stride) {
  return batch / inner * outer_stride + batch % inner * inner_stride;
}

/// x = alpha sum + beta c, not yet rounded to the product's format.
template <int Count>
__device__ inline void scale_sums(const gemm& g, std::int32_t batch, std::int64_t m, std::int64_t n, float (&x)[Count], int valid) {
#pragma unroll
  for (int q = 0; q < Count; ++q) x[q] = times(g.alpha, x[q]);
  if (g.beta != 0.0f) {
    const std::int64_t at = batch_offset(batch, g.inner, g.c_outer, g.c_inner) + m * g.c_row + n * g.c_column;
#pragma unroll
    for (int q = 0; q < Count; ++q)
      if (q < valid) x[q] = plus(x[q], times(g.beta, load(g.c, at + q * g.c_column, g.c_type)));
  }
}

/// The long formulas, whose code should exist once.
__device__ inline __attribute__((noinline)) float called_result_of(std::uint32_t code, float a, float b) {
  return code == 22u ? result_of(22u, a, b, 0.0f, 0.0f) : code == 23u ? result_of(23u, a, b, 0.0f, 0.0f) : result_of(24u, a, b, 0.0f, 0.0f);
}

/// One step of a chain on eight values. `o` holds the operand's values.
__device__ inline void chain_eight(const chain_step& s, float (&x)[8], const float (&o)[8]) {
  const bool first = s.operand_first != 0;
  switch (s.code) {
    case 0:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = plus(x[q], o[q]);
      break;
    case 2:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = times(x[q], o[q]);
      break;
    case 4:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = times(s.constant, x[q]);
      break;
    case 54:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(54u, x[q], 0.0f, 0.0f, 0.0f);
      break;
    case 55:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(55u, first ? o[q] : x[q], first ? x[q] : o[q], 0.0f, 0.0f);
      break;
    case 56:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(56u, x[q], 0.0f, 0.0f, 0.0f);
      break;
    case 24:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = called_result_of(24u, x[q], 0.0f);
      break;
    case 22:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = called_result_of(22u, x[q], 0.0f);
      break;
    case 23:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = called_result_of(23u, first ? o[q] : x[q], first ? x[q] : o[q]);
      break;
    case 18:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(18u, x[q], 0.0f, 0.0f, 0.0f);
      break;
    case 19:
#pragma unroll
      for (int q = 0; q < 8; ++q) x[q] = result_of(19u, first ? o[q] : x[q], first ? x[q] : o[q], 0.0f, 0.0f);
      break;
    default: break;
  }
}

/// Runs a chain on eight rounded products; `at` is the index of the first one in y. An operand is read before an output is written, because
/// it may be the same tensor: chains with several outputs write all but the last one to memory of their own.
__device__ inline void run_chain(const gemm& g, std::int64_t n, std::int64_t at, float (&x)[8]) {
  float o[chain_operands][8];
#pragma unroll
  for (int k = 0; k < chain_operands; ++k) {
    const chain_operand& p = g.operands[k];
    if (p.at == 0) continue;
    if (p.column != 0) {
      load_eight(p.at, p.row != 0 ? at : n, p.type, o[k]);
    } else {
      const float y = load(p.at, 0, p.type);
#pragma unroll
      for (int q = 0; q < 8; ++q) o[k][q] = y;
    }
  }
#pragma unroll 1
  for (int j = 0; j < g.steps; ++j) {
    const chain_step& s = g.chain[j];
    float other[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) other[q] = s.both != 0 ? x[q] : s.operand == 0 ? o[0][q] : o[1][q];
    chain_eight(s, x, other);
    round_eight(x, s.type);
    if (s.store >= 0) store_eight(g.out[s.store], at, g.out_type[s.store], x);
  }
}

/// Finishes one sum. Its code exists once in a module, because it contains the interpreter.
__device__ inline __attribute__((noinline)) void finish_one(const gemm& g, std::int32_t batch, std::int32_t part, std::int64_t m,
                                                            std::int64_t n, float sum) {
  const std::int64_t row = g.swapped != 0 ? n : m, column = g.swapped != 0 ? m : n;
  const std::int64_t rows = g.swapped != 0 ? g.columns : g.rows, columns = g.swapped != 0 ? g.rows : g.columns;
  const std::int64_t at = ((g.before + batch) * rows + row) * columns + column;
  if (g.finish == finish_partial) {
    pointer<float>(g.y)[part * g.elements + at] = sum;
    return;
  }
  float x[1] = {sum};
  scale_sums(g, batch, row, column, x, 1);
  x[0] = rounded(x[0], g.product_type);
  if (g.finish == finish_store) store(g.y, at, g.y_type, g.accumulate != 0 ? plus(x[0], load(g.y, at, g.y_type)) : x[0]);
  else body_run(g.body, at, x[0]);
}

/// Finishes the sums of row m, columns n to n + 7, of which the first `valid` exist; n is a multiple of eight.
__device__ inline void finish_eight(const gemm& g, std::int32_t batch, std::int32_t part, std::int64_t m, std::int64_t n, float (&x)[8],
                                    int valid) {
  if (g.eights == 0) {  // partial sums and results whose rows are not aligned, and bodies that are no chains
#pragma unroll 1
    for (int q = 0; q < valid; ++q) {
      finish_one(g, batch, part, m, n + q, x[0]);
#pragma unroll
      for (int p = 0; p < 7; ++p) x[p] = x[p + 1];
    }
    return;
  }
  const std::int64_t at = ((g.before + batch) * g.rows + m) * g.columns + n;
  if (g.finish == finish_partial) {
    store_eight(g.y, part * g.elements + at, f32, x);
    return;
  }
  scale_sums(g, batch, m, n, x, 8);
  round_eight(x, g.product_type);
  if (g.finish == finish_chain) {
    run_chain(g, n, at, x);
    return;
  }
  if (g.accumulate != 0) {
    float y[8];
    load_eight(g.y, at, g.y_type, y);
#pragma unroll
    for (int q = 0; q < 8; ++q) x[q] = plus(x[q], y[q]);
  }
  store_eight(g.y, at, g.y_type, x);
}

/// The (row, column) of tile i among rows x columns of tiles: groups of 8 rows, so that the tiles in flight share lines of both operands.
__device__ inline void tile_at(int i, int rows, int columns, int& row, int& column) {
  const int group = 8 * columns, top = i / group * 8, height = rows - top < 8 ? rows - top : 8;
  row = top + i % group % height;
  column = i % group / height;
}

}  // namespace isotope::cuda::gpu
