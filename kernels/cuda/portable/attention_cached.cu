// Attention over cached keys and values, bound by reading them. Where positions are divided, attention_cached_* writes the sums of each split, and
// attention_cached_finish adds them in their order.
#include "attention/cached.cuh"

namespace isotope::cuda::gpu {

/// The parts: (N, H, splits, columns + 2) f32: sums, the maximum, the total.
template <int T, int LANES, int QUERIES> __device__ inline void attend_split(const cached_heads& a) {
  using attention = cached_attention<T, LANES, QUERIES>;
  __shared__ cached_sums<attention::columns, QUERIES> sums;
  start_dependents();
  wait_for_dependencies();
  const cached_place<QUERIES> p(a);
  attention my;
  if (!p.idle) {
    my.load_queries(a, p);
    my.attend(a, p, cached_rows_in_cache{});
  }
  my.combine(sums);
  __syncthreads();
  if (a.splits == 1) return store_results<T>(a, p, sums);
  for (int i = int(threadIdx.x); i < QUERIES * (a.D + 2); i += cached_threads) {
    const int r = i / (a.D + 2), c = i % (a.D + 2);
    if (!p.has(a, r)) continue;
    const std::int64_t head = p.n * a.G * a.repeats + p.head(a, r);
    pointer<float>(a.parts)[(head * a.splits + p.split) * (a.D + 2) + c] = c < a.D    ? sums.sum[r][c]
                                                                           : c == a.D ? sums.of[r].top
                                                                                      : sums.of[r].total;
  }
}
template <int T> __device__ inline void finish_splits(const cached_heads& a) {
  start_dependents();
  wait_for_dependencies();
  const std::int64_t H = std::int64_t(a.G) * a.repeats, i = item(), c = i % a.D, head = i / a.D;
  if (head >= a.N * H) return;
  const float* parts = pointer<const float>(a.parts) + head * a.splits * (a.D + 2);
  const auto part = [&](int s) { return parts + s * (a.D + 2); };
  float total = 0.0f, sum = 0.0f;
  cached_attention<T, 8, 1>::cached_combined(
      a.splits, [&](int s) { return cached_top{part(s)[a.D], part(s)[a.D + 1]}; }, [&](int s) { return part(s)[c]; }, total, sum);
  put<T>(a.y, head / H * a.y_stride + head % H * a.D + c, total == 0.0f ? 0.0f : sum / total);
}

extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_8_1(const __grid_constant__ cached_heads a) {
  attend_split<f32, 8, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_8_4(const __grid_constant__ cached_heads a) {
  attend_split<f32, 8, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_16_1(const __grid_constant__ cached_heads a) {
  attend_split<f32, 16, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_16_4(const __grid_constant__ cached_heads a) {
  attend_split<f32, 16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_32_1(const __grid_constant__ cached_heads a) {
  attend_split<f32, 32, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_f32_32_4(const __grid_constant__ cached_heads a) {
  attend_split<f32, 32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(1024) attention_cached_finish_f32(const __grid_constant__ cached_heads a) {
  finish_splits<f32>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_4_1(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 4, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_4_4(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 4, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_8_1(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 8, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_8_4(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 8, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_16_1(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 16, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_16_4(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_32_1(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 32, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_bf16_32_4(const __grid_constant__ cached_heads a) {
  attend_split<bf16, 32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(1024) attention_cached_finish_bf16(const __grid_constant__ cached_heads a) {
  finish_splits<bf16>(a);
}

}  // namespace isotope::cuda::gpu
