#pragma once
// y = dropout(softmax(scale q k^T + mask)) v in f32, for any head size up to 256 and any format. Bound by f32 multiply-adds. Online
// softmax: each tile of keys gives new maxima, by which sums are scaled down. Tiles above the diagonal and before the window are skipped.
// Source: Dao 2023, arXiv:2307.08691.
#include "attention_rows.cuh"

namespace isotope::cuda::gpu {

/// One block of queries from q0 on. head: b H + h.
template <int D> __device__ inline void attention_of_rows(const attention_arguments& a, int head, int q0) {
  constexpr attention_rows_tile t = forward_rows<D>::value;
  const row_products<D, t.own, t.other> x;
  constexpr int R = decltype(x)::R, X = decltype(x)::X, C = decltype(x)::C;
  const int b = head / a.H, h = head % a.H, g = h / (a.H / a.G);
  float4* queries = reinterpret_cast<float4*>(dynamic_shared());          // (own, D)
  float4* keys = queries + t.own * x.pitch;                               // (other, D)
  float4* values = keys + t.other * x.pitch;                              // (other, D)
  float* weights = reinterpret_cast<float*>(values + t.other * x.pitch);  // (own, other)
  const attention_dropout dropout(a);

  float4 sums[R][C];
  float top[R], total[R];
  x.clear(sums);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    top[i] = -3.4028235e38f;
    total[i] = 0;
  }
  x.template fetch<t.own>(queries, a, a.q, head_of(a, a.q, b, h), q0, a.S);
  const int begin = first_key(a, q0) / t.other * t.other, end = end_key(a, q0 + t.own - 1);
  for (int k0 = begin; k0 < end; k0 += t.other) {
    if (k0 > begin) __syncthreads();  // everybody has read the last tile
    x.template fetch<t.other>(keys, a, a.k, head_of(a, a.k, b, g), k0, a.T);
    x.template fetch<t.other>(values, a, a.v, head_of(a, a.v, b, g), k0, a.T);
    __syncthreads();
    float s[R][X];
    x.multiply(s, queries, keys);
#pragma unroll
    for (int j = 0; j < X; ++j) {
      const int n = k0 + x.other(j);
      const float add = a.masked && n < a.T ? load(a.mask, b * a.mask_batch + n * a.mask_key, a.mask_type) : 0.0f;
#pragma unroll
      for (int i = 0; i < R; ++i) s[i][j] = hides(a, q0 + x.own(i), n) ? -INFINITY : fmaf(s[i][j], a.scale, add);
    }
    typename decltype(x)::marks marks{};
    if (a.dropped) marks = x.draw(dropout, drawn_row(a, b, head) + std::uint32_t(q0), k0);
#pragma unroll
    for (int i = 0; i < R; ++i) {
      float most = s[i][0];
#pragma unroll
      for (int j = 1; j < X; ++j) most = fmaxf(most, s[i][j]);
      const float old = top[i];
      top[i] = fmaxf(old, half_warp_largest(most));
      const float shrink = expf(old - top[i]);
      total[i] *= shrink;
#pragma unroll
      for (int j = 0; j < C; ++j) sums[i][j] = {sums[i][j].x * shrink, sums[i][j].y * shrink, sums[i][j].z * shrink, sums[i][j].w * shrink};
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const float w = expf(s[i][j] - top[i]);
        total[i] += w;
        s[i][j] = a.dropped && !marks.keeps(i, j) ? 0.0f : w;
      }
    }
    x.put(weights, s);
    __syncwarp();
    x.add_rows(sums, weights, values);
  }
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const float all = half_warp_sum(total[i]);
    const bool blind = all == 0;
    const int row = q0 + x.own(i);
    x.store_rows(a, a.y, head_of(a, a.y, b, h), q0, a.S, i, sums[i], blind ? 0.0f : a.factor / all);
    if (x.across == 0 && row < a.S && a.lse != 0)
      pointer<float>(a.lse)[std::int64_t(head) * a.S + row] = blind ? -INFINITY : top[i] + logf(all);
  }
}

}  // namespace isotope::cuda::gpu
