// Attention of packed sequences by the definition, one query of a head per thread. Bound by flops: scores are computed 2 + D / 16 times.
#include "attention_packed.h"

#include "../device/packed_rows.cuh"
#include "f64.cuh"

namespace isotope::cuda::gpu {

namespace {

constexpr int chunk = 16;  // columns of a result that a thread keeps in registers; each chunk recomputes the scores

__device__ inline double score(const packed_attention_arguments& a, std::int64_t query, std::int64_t key) {
  double sum = 0;
  for (std::int64_t d = 0; d < a.D; ++d) sum += load_f64(a.q, query + d, a.type) * load_f64(a.k, key + d, a.type);
  return a.scale * sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024) reference_attention_packed(const __grid_constant__ packed_attention_arguments a) {
  const std::int64_t i = item();
  if (i >= a.N * a.H) return;
  const std::int64_t n = i / a.H, head = i % a.H * a.D, sequence = sequence_at(a.starts, a.B, a.N, n);
  const std::int64_t first = sequence < 0 ? 0 : start_of(a.starts, sequence, a.N);
  std::int64_t end = sequence < 0 ? 0 : start_of(a.starts, sequence + 1, a.N);
  if (n >= end) end = first;  // a row behind the last sequence
  else if (a.causal != 0) end = n + 1;
  const std::int64_t query = n * a.q_stride + head, to = n * a.y_stride + head;
  double top = -infinity_f64(), total = 0;
  for (std::int64_t t = first; t < end; ++t) {
    const double x = score(a, query, t * a.k_stride + head);
    if (x > top || x != x) top = x;
  }
  const bool blind = top == -infinity_f64();
  if (!blind)
    for (std::int64_t t = first; t < end; ++t) total += exp(score(a, query, t * a.k_stride + head) - top);
  for (std::int64_t from = 0; from < a.D; from += chunk) {
    double sums[chunk];
#pragma unroll
    for (int d = 0; d < chunk; ++d) sums[d] = 0;
    if (!blind)
      for (std::int64_t t = first; t < end; ++t) {
        const double p = exp(score(a, query, t * a.k_stride + head) - top);
#pragma unroll
        for (int d = 0; d < chunk; ++d)
          if (from + d < a.D) sums[d] += p * load_f64(a.v, t * a.v_stride + head + from + d, a.type);
      }
#pragma unroll
    for (int d = 0; d < chunk; ++d)
      if (from + d < a.D) store_f64(a.y, to + from + d, a.type, blind ? 0 : sums[d] / total);
  }
}

}  // namespace isotope::cuda::gpu
