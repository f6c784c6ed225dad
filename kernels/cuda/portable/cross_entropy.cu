// Cross-entropy of rows of logits and its gradient. Bound by bytes: one read of the logits forward, with a running maximum and a sum
// scaled to it; a read and a write backward, where probabilities are computed again from the stored maxima and sums. A block takes a row,
// or a piece of it in the gradient.
#include "cross_entropy.h"

#include "../rows/exponential.cuh"
#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

template <int T, bool WIDE> __device__ inline void cross_entropy(const cross_entropy_operands& a) {
  constexpr int run = vector_elems<T>, hold = 32 / run;
  const team t(int(blockDim.x));
  const std::int64_t begin = t.row * a.N;
  row_part<T, WIDE, hold> part(a.V, t);
  const float none = -__uint_as_float(0x7f800000u);
  float top = greater_of_two::neutral, total = 0.0f;
  for (; part.start < a.V; part.start += part.columns()) {
    float v[hold][run];
    part.load(a.logits, begin, v, none);
    float most = top;
    for_part<hold, run>([&](int k, int j) {
      if (WIDE && part.column(k, j) >= a.V) v[k][j] = none;  // rows are whole vectors, classes need not be
      most = fmaxf(most, v[k][j]);
    });
    total *= exponential<T>(top - most);
    top = most;
    for_part<hold, run>([&](int k, int j) { total += exponential<T>(v[k][j] - top); });
  }
  const float all = over_team(top, t.size, greater_of_two{});
  total = over_team(total * exponential<T>(top - all), t.size, sum_of_two{});
  if (t.lane != 0) return;
  const float nan = __uint_as_float(0x7fc00000u);
  const bool defined = total > 0.0f;  // a row of -infinity has the sum 0; NaN and infinity give NaN
  pointer<float>(a.tops)[t.row] = defined ? all : nan;
  pointer<float>(a.sums)[t.row] = defined ? total : nan;
  const std::int32_t target = pointer<const std::int32_t>(a.targets)[t.row];
  const bool counts = target >= 0 && target < a.V;
  pointer<float>(a.losses)[t.row] = !counts ? 0.0f : defined ? (all - get<T>(a.logits, begin + target)) + logf(total) : nan;
}
template <int T> __device__ inline void cross_entropy(const cross_entropy_operands& a) {
  if (a.wide) cross_entropy<T, true>(a);
  else cross_entropy<T, false>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) cross_entropy_f32(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy<f32>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) cross_entropy_bf16(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) cross_entropy_f16(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy<f16>(a);
}

template <int T, bool WIDE> __device__ inline void cross_entropy_grad(const cross_entropy_operands& a) {
  constexpr int run = vector_elems<T>, hold = 32 / run;
  team t(int(blockDim.x));
  const std::int64_t row = t.row / a.pieces;
  const int piece = int(t.row % a.pieces);
  const std::int64_t begin = row * a.N;
  row_part<T, WIDE, hold> part(a.N, t);
  const std::int32_t target = pointer<const std::int32_t>(a.targets)[row];
  const bool counts = target >= 0 && target < a.all;
  const float top = pointer<const float>(a.tops)[row], sum = pointer<const float>(a.sums)[row];
  const float factor = sum == sum ? pointer<const float>(a.factor)[0] : sum, share = 1.0f / sum;
  for (part.start = piece * part.columns(); part.start < a.N; part.start += a.pieces * part.columns()) {
    float v[hold][run];
    if (counts) part.load(a.logits, begin, v, 0.0f);
    for_part<hold, run>([&](int k, int j) {
      const int c = part.column(k, j);
      const float p = exponential<T>(v[k][j] - top) * share;
      v[k][j] = counts && c < a.V ? factor * (c + a.first == target ? p - 1.0f : p) : 0.0f;
    });
    part.store(a.dlogits, begin, v);
  }
}
template <int T> __device__ inline void cross_entropy_grad(const cross_entropy_operands& a) {
  if (a.wide) cross_entropy_grad<T, true>(a);
  else cross_entropy_grad<T, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) cross_entropy_grad_f32(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy_grad<f32>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) cross_entropy_grad_bf16(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy_grad<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) cross_entropy_grad_f16(const __grid_constant__ cross_entropy_operands a) {
  cross_entropy_grad<f16>(a);
}

/// One block goes over the rows whose target is a class, in a fixed order: the mean of their losses, or dloss divided by their number.
/// Counts are exact up to 2^24 rows.
extern "C" __global__ void __launch_bounds__(1024) cross_entropy_rows(const __grid_constant__ counted_rows_operands a) {
  float sums[2] = {};
  for (std::int64_t row = threadIdx.x; row < a.rows; row += blockDim.x) {
    const std::int32_t target = pointer<const std::int32_t>(a.targets)[row];
    if (target >= 0 && target < a.V) sums[0] += 1.0f;
    if (!a.gradient) sums[1] += pointer<const float>(a.x)[row];
  }
  over_team(sums, int(blockDim.x), sum_of_two{});
  if (threadIdx.x != 0) return;
  if (a.gradient) pointer<float>(a.y)[0] = pointer<const float>(a.x)[0] / fmaxf(1.0f, sums[0]);
  else pointer<float>(a.y)[0] = sums[0] == 0.0f ? 0.0f : sums[1] / sums[0];
}

}  // namespace isotope::cuda::gpu
