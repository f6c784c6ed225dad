// dq = scale dS k with P = exp(scale q k^T + mask - lse), dS = P (dy v^T - delta) and delta = rowsum(dy y), in f32, for any head size up to
// 256 and any format. Bound by f32 multiply-adds: three products. Writes delta for the derivatives of keys and values.
#include "attention_rows.cuh"

namespace isotope::cuda::gpu {

template <int D> __device__ inline void attention_grad_queries(const attention_arguments& a) {
  constexpr attention_rows_tile t = gradient_rows<D>::value;
  const row_products<D, t.own, t.other> x;
  constexpr int R = decltype(x)::R, X = decltype(x)::X, C = decltype(x)::C;
  const int blocks = (a.S + t.own - 1) / t.own;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
  const int q0 = (blocks - 1 - at.block) * t.own, b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
  float4* queries = reinterpret_cast<float4*>(dynamic_shared());          // (own, D)
  float4* gradients = queries + t.own * x.pitch;                          // (own, D)
  float4* keys = gradients + t.own * x.pitch;                             // (other, D)
  float4* values = keys + t.other * x.pitch;                              // (other, D)
  float* weights = reinterpret_cast<float*>(values + t.other * x.pitch);  // (own, other)
  const attention_dropout dropout(a);

  x.template fetch<t.own>(queries, a, a.q, head_of(a, a.q, b, h), q0, a.S);
  x.template fetch<t.own>(gradients, a, a.dy, head_of(a, a.dy, b, h), q0, a.S);
  __syncthreads();
  float lse[R], mean[R];
  float4 sums[R][C];
  x.clear(sums);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int row = q0 + x.own(i);
    const std::int64_t place = std::int64_t(at.head) * a.S + row;
    float sum = 0;
    for (int c = x.across; c < x.vectors; c += 16) {
      const float4 y = piece(a, a.y, head_of(a, a.y, b, h), row, a.S, 4 * c), dy = gradients[x.own(i) * x.pitch + c];
      sum += (y.x * dy.x + y.y * dy.y) + (y.z * dy.z + y.w * dy.w);
    }
    mean[i] = half_warp_sum(sum);
    lse[i] = row < a.S ? pointer<const float>(a.lse)[place] : -INFINITY;
    if (x.across == 0 && row < a.S) pointer<float>(a.delta)[place] = mean[i];
  }

  const int begin = first_key(a, q0) / t.other * t.other, end = end_key(a, q0 + t.own - 1);
  for (int k0 = begin; k0 < end; k0 += t.other) {
    if (k0 > begin) __syncthreads();  // everybody has read the last tile
    x.template fetch<t.other>(keys, a, a.k, head_of(a, a.k, b, g), k0, a.T);
    x.template fetch<t.other>(values, a, a.v, head_of(a, a.v, b, g), k0, a.T);
    __syncthreads();
    float p[R][X], ds[R][X];
    x.multiply(p, queries, keys);
    x.multiply(ds, gradients, values);
    typename decltype(x)::marks marks{};
    if (a.dropped) marks = x.draw(dropout, drawn_row(a, b, at.head) + std::uint32_t(q0), k0);
#pragma unroll
    for (int j = 0; j < X; ++j) {
      const int n = k0 + x.other(j);
      const float add = a.masked && n < a.T ? load(a.mask, b * a.mask_batch + n * a.mask_key, a.mask_type) : 0.0f;
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const bool none = lse[i] == -INFINITY || hides(a, q0 + x.own(i), n);
        const float w = none ? 0.0f : expf(fmaf(p[i][j], a.scale, add) - lse[i]);
        const float slope = !a.dropped ? ds[i][j] : marks.keeps(i, j) ? ds[i][j] * a.factor : 0.0f;
        ds[i][j] = none ? 0.0f : w * (slope - mean[i]) * a.scale;
      }
    }
    x.put(weights, ds);
    __syncwarp();
    x.add_rows(sums, weights, keys);
  }
#pragma unroll
  for (int i = 0; i < R; ++i) x.store_rows(a, a.dq, head_of(a, a.dq, b, h), q0, a.S, i, sums[i], 1.0f);
}

extern "C" __global__ void __launch_bounds__(256) attention_grad_queries_32(const __grid_constant__ attention_arguments a) {
  attention_grad_queries<32>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_queries_64(const __grid_constant__ attention_arguments a) {
  attention_grad_queries<64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_queries_128(const __grid_constant__ attention_arguments a) {
  attention_grad_queries<128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_queries_256(const __grid_constant__ attention_arguments a) {
  attention_grad_queries<256>(a);
}

}  // namespace isotope::cuda::gpu
