// dq = scale dS k with P = exp(scale q k^T + mask - lse), dS = P (dy v^T - delta) and delta = rowsum(dy y), for the operands that
// attention_f32.cu takes. Bound by f32 multiply-adds: three products. The copies of values run beside the products with keys, those of keys
// beside the product with values. Writes delta for the derivatives of keys and values.
#include "attention_f32.cuh"

namespace isotope::cuda::gpu {

template <class PRODUCTS> __device__ inline void attention_grad_queries_f32(const attention_arguments& a) {
  constexpr int R = PRODUCTS::R, X = PRODUCTS::X, own = PRODUCTS::own_rows, other = PRODUCTS::other_rows;
  const PRODUCTS x;
  const int blocks = (a.S + own - 1) / own;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
  const int q0 = (blocks - 1 - at.block) * own, b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
  float4* queries = reinterpret_cast<float4*>(dynamic_shared());  // (own, D)
  float4* gradients = queries + own * x.pitch;                    // (own, D)
  float4* keys = gradients + own * x.pitch;                       // (other, D)
  float4* values = keys + other * x.pitch;                        // (other, D)
  float4* weights = values + other * x.pitch;                     // (own, part)
  const float *key_rows = rows_of<const float>(a.k, b, g, a.D), *value_rows = rows_of<const float>(a.v, b, g, a.D);
  const attention_dropout dropout(a);

  const int begin = first_key(a, q0) / other * other, end = end_key(a, q0 + own - 1);
  const int own_first = q0 + x.first_own, own_last = own_first + 4 * R - 1;  // queries of the warp
  x.fetch_own(queries, rows_of<const float>(a.q, b, h, a.D), a.q.row, q0, a.S, a.D);
  x.fetch_own(gradients, rows_of<const float>(a.dy, b, h, a.D), a.dy.row, q0, a.S, a.D);
  if (begin < end) x.fetch_other(values, value_rows, a.v.row, begin, a.T, a.D);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  if (begin < end) x.fetch_other(keys, key_rows, a.k.row, begin, a.T, a.D);
  copy_async_commit();

  float lse[R], mean[R];
  typename PRODUCTS::results sums;
  x.clear(sums);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int row = q0 + x.own(i);
    const std::int64_t place = std::int64_t(at.head) * a.S + row;
    float sum = 0;
#pragma unroll
    for (int c = 0; c < x.C; ++c) {
      const int column = 4 * x.across + 32 * c;
      if (row < a.S && column < a.D) {
        const float4 y = *reinterpret_cast<const float4*>(rows_of<const float>(a.y, b, h, a.D) + row * a.y.row + column);
        const float4 dy = gradients[x.own_slot(i) * x.pitch + column / 4];
        sum += (y.x * dy.x + y.y * dy.y) + (y.z * dy.z + y.w * dy.w);
      }
    }
    mean[i] = x.row_sum(sum);
    lse[i] = row < a.S ? pointer<const float>(a.lse)[place] : -INFINITY;
    if (lse[i] == -INFINITY) lse[i] = INFINITY;  // a query that sees nothing: all probabilities become 0
    if (x.across == 0 && row < a.S) pointer<float>(a.delta)[place] = mean[i];
  }

  for (int k0 = begin; k0 < end; k0 += other) {
    const visible view = own_first < a.S ? seen(a, own_first, own_last, k0, k0 + other - 1) : visible::nothing;
    float p[R][X], ds[R][X];
    if (view != visible::nothing) x.multiply(ds, gradients, values);
    copy_async_wait<0>();
    __syncthreads();  // keys are there, and everybody has read the values
    if (k0 + other < end) x.fetch_other(values, value_rows, a.v.row, k0 + other, a.T, a.D);
    copy_async_commit();
    if (view != visible::nothing) {
      if (a.dropped) {
        const auto marks = x.draw_by_query(dropout, drawn_row(a, b, at.head) + std::uint32_t(q0), k0);
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < X; ++j) ds[i][j] = marks.keeps(i, j) ? ds[i][j] * a.factor : 0.0f;
      }
      x.multiply(p, queries, keys);
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const int n = k0 + x.other(j);
        const float add = a.masked && n < a.T ? load(a.mask, b * a.mask_batch + n * a.mask_key, a.mask_type) : 0.0f;
#pragma unroll
        for (int i = 0; i < R; ++i) p[i][j] = fmaf(p[i][j], a.scale, add);
      }
      if (view == visible::something)
#pragma unroll
        for (int i = 0; i < R; ++i) {
          const int first = first_key(a, q0 + x.own(i)) - k0, last = end_key(a, q0 + x.own(i)) - k0;
#pragma unroll
          for (int j = 0; j < X; ++j)
            if (x.other(j) < first || x.other(j) >= last) p[i][j] = -INFINITY;
        }
#pragma unroll
      for (int i = 0; i < R; ++i)
#pragma unroll
        for (int j = 0; j < X; ++j) ds[i][j] = exp_of(p[i][j] - lse[i]) * (ds[i][j] - mean[i]);
      x.add_rows(sums, ds, weights, keys);
    }
    copy_async_wait<0>();
    __syncthreads();  // values are there, and everybody has read the keys
    if (k0 + other < end) x.fetch_other(keys, key_rows, a.k.row, k0 + other, a.T, a.D);
    copy_async_commit();
  }
  float* dq = rows_of<float>(a.dq, b, h, a.D);
#pragma unroll
  for (int i = 0; i < R; ++i) x.store(dq, a.dq.row, q0, a.S, a.D, i, sums[i], a.scale);
}

extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_queries_f32_32(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_f32<f32_queries<32>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_queries_f32_64(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_f32<f32_queries<64>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_queries_f32_96(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_f32<f32_queries<96>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_queries_f32_128(const __grid_constant__ attention_arguments a) {
  attention_grad_queries_f32<f32_queries<128>>(a);
}

}  // namespace isotope::cuda::gpu
