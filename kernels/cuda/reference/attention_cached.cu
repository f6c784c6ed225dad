// Attention over cached keys and values by the definition, one query of a head per thread. Bound by flops: scores are computed 2 + D / 16 times.
#include "attention_cached.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

namespace {

constexpr int chunk = 16;  // columns of a result that a thread keeps in registers; each chunk recomputes the scores

__device__ inline double score(const cached_attention_arguments& a, std::int64_t query, std::int64_t key) {
  double sum = 0;
  for (std::int64_t d = 0; d < a.D; ++d) sum += load_f64(a.q, query + d, a.q_type) * load_f64(a.keys, key + d, a.cache_type);
  return a.scale * sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024) reference_attention_cached(const __grid_constant__ cached_attention_arguments a) {
  const std::int64_t i = item();
  if (i >= a.N * a.H) return;
  const std::int64_t n = i / a.H, h = i % a.H, slot = pointer<const std::int32_t>(a.sequence)[n],
                     own = pointer<const std::int32_t>(a.position)[n];
  const bool idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
  const std::int64_t end = idle ? 0 : own + 1, first = a.window != 0 && end > a.window ? end - a.window : 0;
  const std::int64_t query = n * a.q_stride + h * a.D, to = n * a.y_stride + h * a.D;
  const std::int64_t row = idle ? 0 : (slot * a.G + h / (a.H / a.G)) * a.T * a.D;  // of position 0
  double top = -infinity_f64(), total = 0;
  for (std::int64_t t = first; t < end; ++t) {
    const double x = score(a, query, row + t * a.D);
    if (x > top || x != x) top = x;
  }
  const bool blind = top == -infinity_f64();
  if (!blind)
    for (std::int64_t t = first; t < end; ++t) total += exp(score(a, query, row + t * a.D) - top);
  for (std::int64_t from = 0; from < a.D; from += chunk) {
    double sums[chunk];
#pragma unroll
    for (int d = 0; d < chunk; ++d) sums[d] = 0;
    if (!blind)
      for (std::int64_t t = first; t < end; ++t) {
        const double p = exp(score(a, query, row + t * a.D) - top);
#pragma unroll
        for (int d = 0; d < chunk; ++d)
          if (from + d < a.D) sums[d] += p * load_f64(a.values, row + t * a.D + from + d, a.cache_type);
      }
#pragma unroll
    for (int d = 0; d < chunk; ++d)
      if (from + d < a.D) store_f64(a.y, to + from + d, a.y_type, blind ? 0 : sums[d] / total);
  }
}

}  // namespace isotope::cuda::gpu
