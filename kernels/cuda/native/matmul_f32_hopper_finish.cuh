#pragma once
// What matmul_f32_hopper.cu does with finished sums.
#include "matmul_f32_hopper.cuh"

namespace isotope::cuda::gpu::hopper {

/// Meets the other threads of the warpgroup.
__device__ __forceinline__ void warpgroup_sync(int group) { named_barrier(group + 1, 128); }

/// The place, in quads, of columns 4 quad to 4 quad + 3 of a row of sums in shared memory.
__device__ __forceinline__ int sums_quad(int row, int quad) { return row * (f32_layout::BN / 4) + (quad ^ row % 4 * 2); }

/// Computes those of four sums again by multiply-adds that are not finite, sum q being that of row m + q down and column n + q across.
template <bool CrossA, bool CrossB>
__device__ __forceinline__ void repeat_infinite(const gemm& g, const part& p, int m, int n, int down, int across, float (&x)[4]) {
  if (fabsf(fmaf(x[0], 0.0f, fmaf(x[1], 0.0f, fmaf(x[2], 0.0f, x[3] * 0.0f)))) == 0.0f) return;
#pragma unroll 1
  for (int q = 0; q < 4; ++q) {
    float y = q == 0 ? x[0] : q == 1 ? x[1] : q == 2 ? x[2] : x[3];
    if (fabsf(y) <= 3.4028235e38f) continue;
    y = multiply_adds(g, m + q * down, n + q * across, p.first * BK, min(p.end * BK, g.depth), CrossA, CrossB);
    if (q == 0) x[0] = y;
    else if (q == 1) x[1] = y;
    else if (q == 2) x[2] = y;
    else x[3] = y;
  }
}

/// Finishes the tile of a warpgroup whose result is the transposed product: a thread has four adjacent rows of every eighth column.
template <bool CrossA, bool CrossB>
__device__ __forceinline__ void finish_transposed(const matmul_f32_hopper& a, const part& p, int group, const float* shared) {
  const gemm& g = a.g;
  const int t = int(threadIdx.x % 128), row = t % 16 * 4, m = p.row + 64 * group + row;
  if (m >= a.M) return;
  const std::int64_t start = g.fast == case_partial ? std::int64_t(p.first / a.per) * g.elements : 0;
#pragma unroll 1
  for (int column = t / 16; column < f32_layout::BN; column += 8) {
    const int n = p.column + column;
    if (n >= a.N) return;
    float x[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) x[q] = shared[4 * sums_quad(row + q, column / 4) + column % 4];
    repeat_infinite<CrossA, CrossB>(g, p, m, n, 1, 0, x);
    float4& y = pointer<float4>(g.y)[(start + std::int64_t(n) * a.M + m) / 4];
    if (g.fast != case_partial) {
#pragma unroll
      for (int q = 0; q < 4; ++q) x[q] = times(g.alpha, x[q]);
    }
    if (g.fast == case_add_f32) {
      const float4 o = y;
      x[0] = plus(x[0], o.x), x[1] = plus(x[1], o.y), x[2] = plus(x[2], o.z), x[3] = plus(x[3], o.w);
    }
    y = float4{x[0], x[1], x[2], x[3]};
  }
}

/// Starts reading the rows of operands of the chain, which are dense like y, into the L2 cache.
__device__ __forceinline__ void prefetch_operands(const matmul_f32_hopper& a, const part& p, int group) {
  const gemm& g = a.g;
  const int row = p.row + 64 * group + int(threadIdx.x % 128);
  if (g.fast != case_chain_f32 || threadIdx.x % 128 >= 64 || row >= a.M || p.column >= a.N) return;
#pragma unroll
  for (int k = 0; k < chain_operands; ++k)
    if (g.operands[k].at != 0 && g.operands[k].row != 0)
      prefetch_l2(g.operands[k].at + 4 * (std::uint64_t(row) * std::uint64_t(a.N) + std::uint64_t(p.column)),
                  std::uint32_t(4 * min(f32_layout::BN, a.N - p.column)));
}

/// Finishes the tile of a warpgroup: a thread has four adjacent columns of every fourth row.
template <bool CrossA, bool CrossB>
__device__ __forceinline__ void finish_straight(const matmul_f32_hopper& a, const part& p, int group, const float* shared) {
  constexpr int quads = f32_layout::BN / 4, rows = 128 / quads, batch = 4;
  const gemm& g = a.g;
  const int t = int(threadIdx.x % 128), n = p.column + t % quads * 4, first = t / quads;
  if (n >= a.N) return;
  const bool partial = g.fast == case_partial, chain = g.fast == case_chain_f32, adds = g.fast == case_add_f32;
  const std::int64_t at0 = std::int64_t(p.row + 64 * group) * a.N + n + (partial ? std::int64_t(p.first / a.per) * g.elements : 0);
  float4 same[chain_operands] = {};
  std::uint64_t dense[chain_operands] = {};
  if (chain) {
#pragma unroll
    for (int k = 0; k < chain_operands; ++k) {
      const chain_operand& o = g.operands[k];
      if (o.at == 0) continue;
      if (o.row != 0) {
        dense[k] = o.at;
      } else if (o.column != 0) {
        same[k] = *reinterpret_cast<const float4*>(pointer<const float>(o.at) + n);
      } else {
        const float x = *pointer<const float>(o.at);
        same[k] = float4{x, x, x, x};
      }
    }
  } else if (adds) {
    dense[0] = g.y;
  }
#pragma unroll 1
  for (int r0 = first; r0 < 64; r0 += batch * rows) {
    float other[chain_operands][batch][4], x[batch][4];
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int r = r0 + i * rows;
#pragma unroll
      for (int k = 0; k < chain_operands; ++k) {
        float4 o = same[k];
        if (dense[k] != 0 && p.row + 64 * group + r < a.M) o = pointer<const float4>(dense[k])[(at0 + std::int64_t(r) * a.N) / 4];
        other[k][i][0] = o.x, other[k][i][1] = o.y, other[k][i][2] = o.z, other[k][i][3] = o.w;
      }
      const float4 s = reinterpret_cast<const float4*>(shared)[sums_quad(r, t % quads)];
      x[i][0] = s.x, x[i][1] = s.y, x[i][2] = s.z, x[i][3] = s.w;
      if (p.row + 64 * group + r < a.M) repeat_infinite<CrossA, CrossB>(g, p, p.row + 64 * group + r, n, 0, 1, x[i]);
#pragma unroll
      for (int q = 0; q < 4; ++q)
        if (!partial) x[i][q] = times(g.alpha, x[i][q]);
    }
    const auto store = [&](std::uint64_t to) {
#pragma unroll
      for (int i = 0; i < batch; ++i)
        if (p.row + 64 * group + r0 + i * rows < a.M)
          pointer<float4>(to)[(at0 + std::int64_t(r0 + i * rows) * a.N) / 4] = float4{x[i][0], x[i][1], x[i][2], x[i][3]};
    };
    if (!chain) {
#pragma unroll
      for (int i = 0; i < batch; ++i)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          if (adds) x[i][q] = plus(x[i][q], other[0][i][q]);
      store(g.y);
      continue;
    }
#pragma unroll 1
    for (int j = 0; j < g.steps; ++j) {
      const chain_step& c = g.chain[j];
      float o[batch][4];
#pragma unroll
      for (int i = 0; i < batch; ++i)
#pragma unroll
        for (int q = 0; q < 4; ++q) o[i][q] = c.both != 0 ? x[i][q] : c.operand == 0 ? other[0][i][q] : other[1][i][q];
      chain_values(c, x, o);
      if (c.store >= 0) store(g.out[c.store]);
    }
  }
}

/// Finishes the sums of a warpgroup by way of shared memory.
template <bool CrossA, bool CrossB>
__device__ __forceinline__ void finish(const matmul_f32_hopper& a, const part& p, int group, const float (&sums)[f32_layout::BN / 2]) {
  const int t = int(threadIdx.x % 128), lane = t % 32, row = t / 32 * 16 + lane / 4;
  float* const shared = reinterpret_cast<float*>(dynamic_shared() + f32_layout::sums(group));
  warpgroup_sync(group);  // the tile before is finished
#pragma unroll
  for (int i = 0; i < f32_layout::BN / 8; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      reinterpret_cast<float2*>(shared)[2 * sums_quad(row + 8 * half, 2 * i + lane % 4 / 2) + lane % 2] =
          float2{sums[4 * i + 2 * half], sums[4 * i + 2 * half + 1]};
  warpgroup_sync(group);
  if (a.g.swapped != 0) finish_transposed<CrossA, CrossB>(a, p, group, shared);
  else finish_straight<CrossA, CrossB>(a, p, group, shared);
  __syncwarp();
}

}  // namespace isotope::cuda::gpu::hopper
