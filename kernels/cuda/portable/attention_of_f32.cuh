#pragma once
// y = dropout(softmax(scale q k^T + mask)) v for operands in f32 whose rows start at multiples of 16 bytes and heads of up to 128 elements.
// Bound by f32 multiply-adds. The copies of keys run beside the second product, those of values beside the first. Online softmax: scores
// are relative to a reference for each row, its largest score when the reference was last set; only where a score exceeds it by more than
// `slack` are maxima exchanged and sums scaled down. Source: Dao 2023, arXiv:2307.08691.
#include "attention_f32.cuh"

namespace isotope::cuda::gpu {

/// One block of queries from q0 on. head: b H + h.
template <class PRODUCTS> __device__ inline void attention_of_f32(const attention_arguments& a, int head, int q0) {
  constexpr int R = PRODUCTS::R, X = PRODUCTS::X, own = PRODUCTS::own_rows, other = PRODUCTS::other_rows;
  constexpr float slack = 5;
  const PRODUCTS x;
  const int b = head / a.H, h = head % a.H, g = h / (a.H / a.G);
  float4* queries = reinterpret_cast<float4*>(dynamic_shared());  // (own, D)
  float4* keys = queries + own * x.pitch;                         // (other, D)
  float4* values = keys + other * x.pitch;                        // (other, D)
  float4* weights = values + other * x.pitch;                     // (own, part)
  const float *key_rows = rows_of<const float>(a.k, b, g, a.D), *value_rows = rows_of<const float>(a.v, b, g, a.D);
  const attention_dropout dropout(a);

  typename PRODUCTS::results sums;
  float top[R], total[R];
  x.clear(sums);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    top[i] = -3.4028235e38f;
    total[i] = 0;
  }
  const int begin = first_key(a, q0) / other * other, end = end_key(a, q0 + own - 1);
  const int own_first = q0 + x.first_own, own_last = own_first + 4 * R - 1;  // queries of the warp
  x.fetch_own(queries, rows_of<const float>(a.q, b, h, a.D), a.q.row, q0, a.S, a.D);
  if (begin < end) x.fetch_other(keys, key_rows, a.k.row, begin, a.T, a.D);
  copy_async_commit();
  for (int k0 = begin; k0 < end; k0 += other) {
    copy_async_wait<0>();
    __syncthreads();  // keys are there, and everybody has read the last values
    x.fetch_other(values, value_rows, a.v.row, k0, a.T, a.D);
    copy_async_commit();
    const visible view = own_first < a.S ? seen(a, own_first, own_last, k0, k0 + other - 1) : visible::nothing;
    float s[R][X];
    if (view != visible::nothing) {
      x.multiply(s, queries, keys);
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const int n = k0 + x.other(j);
        const float add = a.masked && n < a.T ? load(a.mask, b * a.mask_batch + n * a.mask_key, a.mask_type) : 0.0f;
#pragma unroll
        for (int i = 0; i < R; ++i) s[i][j] = fmaf(s[i][j], a.scale, add);
      }
      if (view == visible::something)
#pragma unroll
        for (int i = 0; i < R; ++i) {
          const int first = first_key(a, q0 + x.own(i)) - k0, last = end_key(a, q0 + x.own(i)) - k0;
#pragma unroll
          for (int j = 0; j < X; ++j)
            if (x.other(j) < first || x.other(j) >= last) s[i][j] = -INFINITY;
        }
      float most[R];
      bool passed = false;
#pragma unroll
      for (int i = 0; i < R; ++i) {
        most[i] = s[i][0];
#pragma unroll
        for (int j = 1; j < X; ++j) most[i] = fmaxf(most[i], s[i][j]);
        passed = passed || most[i] - top[i] > slack;
      }
      if (__ballot_sync(0xffffffffu, passed) != 0)
#pragma unroll
        for (int i = 0; i < R; ++i) {
          const float next = fmaxf(top[i], x.row_largest(most[i])), shrink = exp_of(top[i] - next);
          top[i] = next;
          total[i] *= shrink;
#pragma unroll
          for (int c = 0; c < x.C; ++c) {
            float4& y = sums[i][c];
            y = {y.x * shrink, y.y * shrink, y.z * shrink, y.w * shrink};
          }
        }
#pragma unroll
      for (int i = 0; i < R; ++i)
#pragma unroll
        for (int j = 0; j < X; ++j) {
          s[i][j] = exp_of(s[i][j] - top[i]);
          total[i] += s[i][j];
        }
      if (a.dropped) {
        const auto marks = x.draw_by_query(dropout, drawn_row(a, b, head) + std::uint32_t(q0), k0);
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < X; ++j)
            if (!marks.keeps(i, j)) s[i][j] = 0;
      }
    }
    copy_async_wait<0>();
    __syncthreads();  // values are there, and everybody has read the keys
    if (k0 + other < end) x.fetch_other(keys, key_rows, a.k.row, k0 + other, a.T, a.D);
    copy_async_commit();
    if (view != visible::nothing) x.add_rows(sums, s, weights, values);
  }
  float* y = rows_of<float>(a.y, b, h, a.D);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const float all = x.row_sum(total[i]);
    const bool blind = all == 0;
    const int row = q0 + x.own(i);
    x.store(y, a.y.row, q0, a.S, a.D, i, sums[i], blind ? 0.0f : a.factor / all);
    if (x.across == 0 && row < a.S && a.lse != 0)
      pointer<float>(a.lse)[std::int64_t(head) * a.S + row] = blind ? -INFINITY : top[i] + logf(all);
  }
}

}  // namespace isotope::cuda::gpu
