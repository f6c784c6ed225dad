// dv = P^T dy and dk = scale dS^T q with P and dS as in attention_grad_queries_f32.cu, for the operands that attention_f32.cu takes. Bound
// by f32 multiply-adds: four products. A block owns keys and values and walks the queries of all heads that they serve, in order: no
// atomics, the same sums in every run. The copies of dy run beside the last product, those of queries beside the first.
#include "attention_f32.cuh"

namespace isotope::cuda::gpu {

template <class PRODUCTS> __device__ inline void attention_grad_keys_f32(const attention_arguments& a) {
  constexpr int R = PRODUCTS::R, X = PRODUCTS::X, own = PRODUCTS::own_rows, other = PRODUCTS::other_rows;
  static_assert(2 * other <= PRODUCTS::threads);
  const PRODUCTS x;
  const int blocks = (a.T + own - 1) / own, group = a.H / a.G;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.G));
  const int k0 = at.block * own, b = at.head / a.G, g = at.head % a.G;  // the first keys have the most queries, so they come first
  float4* keys = reinterpret_cast<float4*>(dynamic_shared());           // (own, D)
  float4* values = keys + own * x.pitch;                                // (own, D)
  float4* queries = values + own * x.pitch;                             // (other, D)
  float4* gradients = queries + other * x.pitch;                        // (other, D)
  float4* weights = gradients + other * x.pitch;                        // (own, part)
  float4* beside = weights + own * x.weight_pitch;                      // (2, other): lse and delta
  const attention_dropout dropout(a);

  const int own_first = k0 + x.first_own, own_last = own_first + 4 * R - 1;  // keys of the warp
  const int begin = first_query(a, k0) / other * other, end = end_query(a, k0 + own - 1);
  const int first_head = g * group, end_head = begin < end ? first_head + group : first_head;
  float own_value = 0;  // lse or delta of a query of the tile, of the first threads
  const auto fetch_queries = [&](int h, int q0) {
    x.fetch_other(queries, rows_of<const float>(a.q, b, h, a.D), a.q.row, q0, a.S, a.D);
    if (int(threadIdx.x) < 2 * other) {
      const bool second = int(threadIdx.x) >= other;
      const int row = q0 + int(threadIdx.x) % other;
      own_value = second ? 0.0f : INFINITY;  // of queries that see nothing: all probabilities become 0
      if (row < a.S) own_value = pointer<const float>(second ? a.delta : a.lse)[(std::int64_t(b) * a.H + h) * a.S + row];
      if (!second && own_value == -INFINITY) own_value = INFINITY;
    }
  };
  const auto fetch_gradients = [&](int h, int q0) {
    x.fetch_other(gradients, rows_of<const float>(a.dy, b, h, a.D), a.dy.row, q0, a.S, a.D);
  };
  x.fetch_own(keys, rows_of<const float>(a.k, b, g, a.D), a.k.row, k0, a.T, a.D);
  x.fetch_own(values, rows_of<const float>(a.v, b, g, a.D), a.v.row, k0, a.T, a.D);
  if (first_head < end_head) fetch_gradients(first_head, begin);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  if (first_head < end_head) fetch_queries(first_head, begin);
  copy_async_commit();

  typename PRODUCTS::results dk, dv;
  x.clear(dk);
  x.clear(dv);
  for (int h = first_head, q0 = begin, next_h, next_q0; h < end_head; h = next_h, q0 = next_q0) {
    next_h = q0 + other < end ? h : h + 1;
    next_q0 = q0 + other < end ? q0 + other : begin;
    const visible view = own_first < a.T ? seen(a, q0, q0 + other - 1, own_first, own_last) : visible::nothing;
    float p[R][X], ds[R][X];
    if (view != visible::nothing) x.multiply(ds, values, gradients);
    if (int(threadIdx.x) < 2 * other) reinterpret_cast<float*>(beside)[threadIdx.x] = own_value;
    copy_async_wait<0>();
    __syncthreads();  // queries are there
    if (view != visible::nothing) {
      const std::uint32_t row = drawn_row(a, b, b * a.H + h) + std::uint32_t(q0);
      const std::uint32_t kept = a.dropped ? x.draw_by_key(dropout, row, k0) : 0xffffffffu;
      if (a.dropped)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < X; ++j) ds[i][j] = (kept >> (j * R + i) & 1u) != 0 ? ds[i][j] * a.factor : 0.0f;
      x.multiply(p, keys, queries);
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const int m = k0 + x.own(i);
        const float add = a.masked && m < a.T ? load(a.mask, b * a.mask_batch + m * a.mask_key, a.mask_type) : 0.0f;
#pragma unroll
        for (int j = 0; j < X; ++j) p[i][j] = fmaf(p[i][j], a.scale, add);
      }
      if (view == visible::something)
#pragma unroll
        for (int j = 0; j < X; ++j) {
          const int s = q0 + x.other(j), first = first_key(a, s) - k0, last = end_key(a, s) - k0;
#pragma unroll
          for (int i = 0; i < R; ++i)
            if (x.own(i) < first || x.own(i) >= last) p[i][j] = -INFINITY;
        }
      const float* of_queries = reinterpret_cast<const float*>(beside);
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const float lse = of_queries[x.other(j)], mean = of_queries[other + x.other(j)];
#pragma unroll
        for (int i = 0; i < R; ++i) {
          p[i][j] = exp_of(p[i][j] - lse);
          ds[i][j] = p[i][j] * (ds[i][j] - mean);
        }
      }
      if (a.dropped)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < X; ++j) p[i][j] = (kept >> (j * R + i) & 1u) != 0 ? p[i][j] : 0.0f;
      x.add_rows(dv, p, weights, gradients);
    }
    __syncthreads();  // everybody has read the gradients
    if (next_h < end_head) fetch_gradients(next_h, next_q0);
    copy_async_commit();
    if (view != visible::nothing) x.add_rows(dk, ds, weights, queries);
    copy_async_wait<0>();
    __syncthreads();  // gradients are there, and everybody has read the queries
    if (next_h < end_head) fetch_queries(next_h, next_q0);
    copy_async_commit();
  }
  float *dk_rows = rows_of<float>(a.dk, b, g, a.D), *dv_rows = rows_of<float>(a.dv, b, g, a.D);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    x.store(dk_rows, a.dk.row, k0, a.T, a.D, i, dk[i], a.scale);
    x.store(dv_rows, a.dv.row, k0, a.T, a.D, i, dv[i], a.factor);
  }
}

extern "C" __global__ void __launch_bounds__(128, 3) attention_grad_keys_f32_32(const __grid_constant__ attention_arguments a) {
  attention_grad_keys_f32<f32_keys<32>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_grad_keys_f32_64(const __grid_constant__ attention_arguments a) {
  attention_grad_keys_f32<f32_keys<64>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_keys_f32_96(const __grid_constant__ attention_arguments a) {
  attention_grad_keys_f32<f32_keys<96>>(a);
}
extern "C" __global__ void __launch_bounds__(128, 2) attention_grad_keys_f32_128(const __grid_constant__ attention_arguments a) {
  attention_grad_keys_f32<f32_keys<128>>(a);
}

}  // namespace isotope::cuda::gpu
