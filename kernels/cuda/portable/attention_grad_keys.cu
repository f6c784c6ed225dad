// dv = P^T dy and dk = scale dS^T q with P and dS as in attention_grad_queries.cu, in f32, for any head size up to 256 and any format.
// Bound by f32 multiply-adds: four products. A block owns keys and values and walks the queries of all heads that they serve, in order: no
// atomics, the same sums in every run.
#include "attention_rows.cuh"

namespace isotope::cuda::gpu {

template <int D> __device__ inline void attention_grad_keys(const attention_arguments& a) {
  constexpr attention_rows_tile t = gradient_rows<D>::value;
  const row_products<D, t.own, t.other> x;
  constexpr int R = decltype(x)::R, X = decltype(x)::X, C = decltype(x)::C;
  const int blocks = (a.T + t.own - 1) / t.own, group = a.H / a.G;
  const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.G));
  const int k0 = at.block * t.own, b = at.head / a.G, g = at.head % a.G;     // the first keys have the most queries, so they come first
  float4* keys = reinterpret_cast<float4*>(dynamic_shared());                // (own, D)
  float4* values = keys + t.own * x.pitch;                                   // (own, D)
  float4* queries = values + t.own * x.pitch;                                // (other, D)
  float4* gradients = queries + t.other * x.pitch;                           // (other, D)
  float* weights = reinterpret_cast<float*>(gradients + t.other * x.pitch);  // (own, other)
  const attention_dropout dropout(a);

  x.template fetch<t.own>(keys, a, a.k, head_of(a, a.k, b, g), k0, a.T);
  x.template fetch<t.own>(values, a, a.v, head_of(a, a.v, b, g), k0, a.T);
  float add[R];
  float4 dk[R][C], dv[R][C];
  x.clear(dk);
  x.clear(dv);
#pragma unroll
  for (int i = 0; i < R; ++i) {
    const int n = k0 + x.own(i);
    add[i] = a.masked && n < a.T ? load(a.mask, b * a.mask_batch + n * a.mask_key, a.mask_type) : 0.0f;
  }

  const int begin = first_query(a, k0) / t.other * t.other, end = end_query(a, k0 + t.own - 1);
  for (int h = g * group; h < (g + 1) * group; ++h)
    for (int q0 = begin; q0 < end; q0 += t.other) {
      const std::int64_t first = (std::int64_t(b) * a.H + h) * a.S + q0;
      const std::uint32_t drawn = drawn_row(a, b, b * a.H + h) + std::uint32_t(q0);
      __syncthreads();  // everybody has read the last tile
      x.template fetch<t.other>(queries, a, a.q, head_of(a, a.q, b, h), q0, a.S);
      x.template fetch<t.other>(gradients, a, a.dy, head_of(a, a.dy, b, h), q0, a.S);
      __syncthreads();
      float p[R][X], ds[R][X];
      x.multiply(p, keys, queries);
      x.multiply(ds, values, gradients);
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const int s = q0 + x.other(j);
        const float lse = s < a.S ? pointer<const float>(a.lse)[first + x.other(j)] : -INFINITY;
        const float mean = s < a.S ? pointer<const float>(a.delta)[first + x.other(j)] : 0.0f;
        const int key = k0 + x.own(0);  // own keys of a thread share a group of four neighbours
        const std::uint32_t kept = a.dropped ? dropout.kept(drawn + std::uint32_t(x.other(j)), std::uint32_t(key / 4)) >> key % 4 : 0xfu;
#pragma unroll
        for (int i = 0; i < R; ++i) {
          const bool none = lse == -INFINITY || hides(a, s, k0 + x.own(i)), keep = (kept >> i & 1u) != 0;
          const float w = none ? 0.0f : expf(fmaf(p[i][j], a.scale, add[i]) - lse);
          const float slope = keep ? ds[i][j] * a.factor : 0.0f;
          ds[i][j] = none ? 0.0f : w * (slope - mean) * a.scale;
          p[i][j] = keep ? w * a.factor : 0.0f;
        }
      }
      x.put(weights, p);
      __syncwarp();
      x.add_rows(dv, weights, gradients);
      __syncwarp();
      x.put(weights, ds);
      __syncwarp();
      x.add_rows(dk, weights, queries);
    }
#pragma unroll
  for (int i = 0; i < R; ++i) {
    x.store_rows(a, a.dk, head_of(a, a.dk, b, g), k0, a.T, i, dk[i], 1.0f);
    x.store_rows(a, a.dv, head_of(a, a.dv, b, g), k0, a.T, i, dv[i], 1.0f);
  }
}

extern "C" __global__ void __launch_bounds__(256, 2) attention_grad_keys_32(const __grid_constant__ attention_arguments a) {
  attention_grad_keys<32>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_keys_64(const __grid_constant__ attention_arguments a) {
  attention_grad_keys<64>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_keys_128(const __grid_constant__ attention_arguments a) {
  attention_grad_keys<128>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_grad_keys_256(const __grid_constant__ attention_arguments a) {
  attention_grad_keys<256>(a);
}

}  // namespace isotope::cuda::gpu
