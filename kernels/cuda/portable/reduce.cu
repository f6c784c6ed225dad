// y[row, piece] = sum, product or extremum of a piece of row `row` of x. Bound by bytes: a team per piece, 32 elements per thread in
// flight. A few long rows take two passes, pieces first: the order of the terms depends only on the shape.
#include "reduce.h"

#include "../rows/order.cuh"

namespace isotope::cuda::gpu {

/// Calls f with the elements of each part of a piece, and returns after the whole row; elements outside read as `other`.
template <int T, bool WIDE, class F>
__device__ inline void for_piece(const row_operands& a, const team& t, std::int64_t result, float other, const F& f) {
  constexpr int run = vector_elems<T>, hold = 32 / run;
  const std::int64_t from = result % a.pieces * a.each, rest = a.n - from;
  row_part<T, WIDE, hold> part(int(rest < a.each ? rest : a.each), t);
  for (; part.start < part.n; part.start += part.columns()) {
    float v[hold][run];
    part.load(a.x, result / a.pieces * a.pitch + from, v, other);
    f(part, v);
  }
}
template <int T, bool WIDE, class F> __device__ inline void reduce(const row_operands& a, F combine) {
  constexpr int run = vector_elems<T>, hold = 32 / run;
  const team t(a.team);
  for (std::int64_t result = t.row; result < a.results; result += t.teams) {
    float total[4] = {F::neutral, F::neutral, F::neutral, F::neutral};
    for_piece<T, WIDE>(a, t, result, F::neutral, [&](const row_part<T, WIDE, hold>&, const float(&v)[hold][run]) {
      for_part<hold, run>([&](int k, int j) { total[j % 4] = combine(total[j % 4], v[k][j]); });
    });
    float all = over_team(combine(combine(total[0], total[1]), combine(total[2], total[3])), t.size, combine);
    if (a.terms != 0.0f) all /= a.terms;
    if (t.lane == 0) store(a.y, result, a.y_type, all);
  }
}
struct product_of_two {
  static constexpr float neutral = 1.0f;
  __device__ float operator()(float a, float b) const { return a * b; }
};
template <int T, class F> __device__ inline void reduce(const row_operands& a, F combine) {
  if (a.wide) reduce<T, true>(a, combine);
  else reduce<T, false>(a, combine);
}
extern "C" __global__ void __launch_bounds__(256) row_sum_f32(const __grid_constant__ row_operands a) { reduce<f32>(a, sum_of_two{}); }
extern "C" __global__ void __launch_bounds__(256) row_sum_bf16(const __grid_constant__ row_operands a) { reduce<bf16>(a, sum_of_two{}); }
extern "C" __global__ void __launch_bounds__(256) row_sum_f16(const __grid_constant__ row_operands a) { reduce<f16>(a, sum_of_two{}); }
extern "C" __global__ void __launch_bounds__(256) row_prod_f32(const __grid_constant__ row_operands a) { reduce<f32>(a, product_of_two{}); }
extern "C" __global__ void __launch_bounds__(256) row_prod_bf16(const __grid_constant__ row_operands a) {
  reduce<bf16>(a, product_of_two{});
}
extern "C" __global__ void __launch_bounds__(256) row_prod_f16(const __grid_constant__ row_operands a) { reduce<f16>(a, product_of_two{}); }

/// Numbers are compared as words of the same order, followed by the complement of the index, so that the first of equals wins.
template <int T, bool WIDE> __device__ inline void extremum(const row_operands& a) {
  constexpr int run = vector_elems<T>, hold = 32 / run;
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.results; row += t.teams) {
    std::uint32_t best = 0, place = 0;
    for_piece<T, WIDE>(a, t, row, 0.0f, [&](const row_part<T, WIDE, hold>& part, const float(&v)[hold][run]) {
      for_part<hold, run>([&](int k, int j) {
        const std::uint32_t w = part.inside(k, j) ? order_of(v[k][j], a.least != 0, a.place != 0) : 0;
        place = w > best ? std::uint32_t(part.column(k, j)) : place;
        best = w > best ? w : best;
      });
    });
    const std::uint64_t all = greatest(std::uint64_t(best) << 32 | std::uint32_t(~place), t.size);
    if (t.lane != 0) continue;
    if (a.place) pointer<std::uint32_t>(a.y)[row] = ~std::uint32_t(all);
    else store(a.y, row, a.y_type, number_of(std::uint32_t(all >> 32), a.least != 0));
  }
}
template <int T> __device__ inline void extremum(const row_operands& a) {
  if (a.wide) extremum<T, true>(a);
  else extremum<T, false>(a);
}
extern "C" __global__ void __launch_bounds__(256) row_extremum_f32(const __grid_constant__ row_operands a) { extremum<f32>(a); }
extern "C" __global__ void __launch_bounds__(256) row_extremum_bf16(const __grid_constant__ row_operands a) { extremum<bf16>(a); }
extern "C" __global__ void __launch_bounds__(256) row_extremum_f16(const __grid_constant__ row_operands a) { extremum<f16>(a); }

}  // namespace isotope::cuda::gpu
