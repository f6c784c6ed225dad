// Running sums of rows, one team per row: an element's sum is made of the sums within its thread's run, of the earlier runs of the team's
// stretch, and, in f64, of all earlier stretches. Along an axis that is not the last, a thread takes a column. Bound by bytes.
#include "scan.h"

#include "../rows/scan.cuh"

namespace isotope::cuda::gpu {

template <int T, bool WIDE, bool BACK> __device__ inline void cumsum(const cumsum_operands& a) {
  constexpr int run = vector_elems<T>;
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams) {
    double earlier = 0;
    for (std::int64_t start = 0; start < a.n; start += t.size * run) {
      const std::int64_t p = start + t.lane * run;
      float v[run], all;
      load_stretch<T, WIDE, BACK>(a.x, row * a.n, p, a.n, 0.0f, v);
#pragma unroll
      for (int j = 1; j < run; ++j) v[j] += v[j - 1];
      const float before = float(double(before_in_team(v[run - 1], all, t.size, sum_of_two{})) + earlier);
      earlier += double(all);
#pragma unroll
      for (int j = 0; j < run; ++j) v[j] += before;
      store_stretch<T, WIDE, BACK>(a.y, row * a.n, p, a.n, v);
    }
  }
}
template <int T> __device__ inline void cumsum(const cumsum_operands& a) {
  if (a.wide && a.reverse) cumsum<T, true, true>(a);
  else if (a.wide) cumsum<T, true, false>(a);
  else if (a.reverse) cumsum<T, false, true>(a);
  else cumsum<T, false, false>(a);
}
extern "C" __global__ void __launch_bounds__(1024) cumsum_f32(const __grid_constant__ cumsum_operands a) { cumsum<f32>(a); }
extern "C" __global__ void __launch_bounds__(1024) cumsum_bf16(const __grid_constant__ cumsum_operands a) { cumsum<bf16>(a); }
extern "C" __global__ void __launch_bounds__(1024) cumsum_f16(const __grid_constant__ cumsum_operands a) { cumsum<f16>(a); }

template <int T> __device__ inline void cumsum_column(const cumsum_operands& a) {
  const std::int64_t column = item();
  if (column >= a.rows * a.inner) return;
  const std::int64_t begin = column / a.inner * a.n * a.inner + column % a.inner;
  double sum = 0;
  for (std::int64_t k = 0; k < a.n; ++k) {
    const std::int64_t i = begin + (a.reverse ? a.n - 1 - k : k) * a.inner;
    sum += double(get<T>(a.x, i));
    put<T>(a.y, i, float(sum));
  }
}
extern "C" __global__ void __launch_bounds__(1024) cumsum_columns_f32(const __grid_constant__ cumsum_operands a) { cumsum_column<f32>(a); }
extern "C" __global__ void __launch_bounds__(1024) cumsum_columns_bf16(const __grid_constant__ cumsum_operands a) {
  cumsum_column<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(1024) cumsum_columns_f16(const __grid_constant__ cumsum_operands a) { cumsum_column<f16>(a); }

}  // namespace isotope::cuda::gpu
