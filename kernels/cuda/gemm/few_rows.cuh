#pragma once
// What the kernels of products with few rows share: which part of K a block has, chunks of 16 bytes, and how single sums are finished.
#include "gemm/epilogue.cuh"

namespace isotope::cuda::gpu {

/// The batch and the part of K of a block, and the addresses of its operands.
struct few_rows_place {
  std::uint64_t a, b;
  int batch, part, begin, end;
  __device__ explicit few_rows_place(const gemm& g) {
    // Divisions take longer than the first load of a small product.
    batch = g.first + (g.parts == 1 ? int(blockIdx.z) : int(blockIdx.z) / g.parts);
    part = g.parts == 1 ? 0 : int(blockIdx.z) % g.parts;
    const std::int64_t first = std::int64_t(part) * g.part_depth;
    begin = int(first < g.depth ? first : g.depth);
    end = int(first + g.part_depth < g.depth ? first + g.part_depth : g.depth);
    a = g.a.at + (batch == 0 ? 0 : std::uint64_t(batch_offset(batch, g.inner, g.a.outer, g.a.inner) * (g.a.type == f32 ? 4 : 2)));
    b = g.b.at + (batch == 0 ? 0 : std::uint64_t(batch_offset(batch, g.inner, g.b.outer, g.b.inner) * (g.b.type == f32 ? 4 : 2)));
  }
};

/// 16 bytes that the kernel reads once: they do not displace the rows of x from L1.
__device__ inline uint4 load_once(const void* at) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  return *static_cast<const uint4*>(at);
#else
  uint4 u;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(u.x), "=r"(u.y), "=r"(u.z), "=r"(u.w) : "l"(at));
  return u;
#endif
}
/// The same number, which the compiler must not keep in registers for a whole loop in other forms.
__device__ inline std::int64_t recomputed(std::int64_t x) {
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" : "+l"(x));
#endif
  return x;
}
/// The operands of a chain at one element of the result. They are read before the sum is known, so that nothing waits for them.
struct few_rows_operands {
  float x[chain_operands];
  __device__ few_rows_operands(const gemm& g, int batch, int m, int n) {
    const std::int64_t at = ((g.before + batch) * g.rows + m) * g.columns + n;
#pragma unroll
    for (int k = 0; k < chain_operands; ++k) {
      const chain_operand& p = g.operands[k];
      x[k] = g.finish == finish_chain && p.at != 0 && m < g.rows && n < g.columns ? load(p.at,
                                                                                         p.column == 0 ? 0
                                                                                         : p.row != 0  ? at
                                                                                                       : n,
                                                                                         p.type)
                                                                                  : 0.0f;
    }
  }
};

/// One step of a chain on one value; `o` is the operand's.
__device__ inline float chain_one(const chain_step& s, float x, float o) {
  const float a = s.operand_first != 0 ? o : x, b = s.operand_first != 0 ? x : o;
  switch (s.code) {
    case 0: return plus(x, o);
    case 2: return times(x, o);
    case 4: return times(s.constant, x);
    case 54: return result_of(54u, x, 0.0f, 0.0f, 0.0f);
    case 55: return result_of(55u, a, b, 0.0f, 0.0f);
    case 56: return result_of(56u, x, 0.0f, 0.0f, 0.0f);
    case 18: return result_of(18u, x, 0.0f, 0.0f, 0.0f);
    case 19: return result_of(19u, a, b, 0.0f, 0.0f);
    default: return called_result_of(s.code, s.code == 23 ? a : x, b);
  }
}

/// Finishes the sum of row m and column n, which exist.
__device__ inline void finish_few(const gemm& g, const few_rows_place& p, int m, int n, float sum, const few_rows_operands& o) {
  if (g.swapped != 0 || g.finish == finish_partial || g.finish == finish_body || g.beta != 0.0f) {
    finish_one(g, p.batch, p.part, m, n, sum);
    return;
  }
  const std::int64_t at = ((g.before + p.batch) * g.rows + m) * g.columns + n;
  float x = rounded(times(g.alpha, sum), g.product_type);
  if (g.finish == finish_store) {
    store(g.y, at, g.y_type, g.accumulate != 0 ? plus(x, load(g.y, at, g.y_type)) : x);
    return;
  }
  if (g.fast == case_bias || g.fast == case_residual || g.fast == case_bias_residual) {
    x = rounded(plus(x, o.x[0]), bf16);
    if (g.fast == case_bias_residual) x = rounded(plus(x, o.x[1]), bf16);
    store(g.out[g.chain[g.steps - 1].store], at, bf16, x);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < g.steps; ++j) {
    const chain_step& s = g.chain[j];
    x = rounded(chain_one(s, x, s.both != 0 ? x : s.operand == 0 ? o.x[0] : o.x[1]), s.type);
    if (s.store >= 0) store(g.out[s.store], at, g.out_type[s.store], x);
  }
}

}  // namespace isotope::cuda::gpu
