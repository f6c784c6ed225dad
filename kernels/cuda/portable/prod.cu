// Gradient of the products of rows, a team per row, in two launches: the products of the elements before each element, then (BACK) those
// of the elements behind it, times the former and dy. Bound by bytes.
#include "scan.h"

#include "../rows/scan.cuh"

namespace isotope::cuda::gpu {

struct product {
  static constexpr float neutral = 1.0f;
  __device__ float operator()(float a, float b) const { return a * b; }
};
template <int T, bool WIDE, bool BACK> __device__ inline void prod_grad(const prod_grad_operands& a) {
  constexpr int run = vector_elems<T>;
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams) {
    const float d = BACK ? load(a.dy, row, a.dy_type) : 1.0f;
    const std::int64_t begin = row * a.n;
    float stretches = 1.0f;
    for (std::int64_t start = 0; start < a.n; start += t.size * run) {
      const std::int64_t p = start + t.lane * run;
      float v[run], others[run], all, within = 1.0f;
      load_stretch<T, WIDE, BACK>(a.x, begin, p, a.n, 1.0f, v);
#pragma unroll
      for (int j = 0; j < run; ++j) {
        others[j] = within;
        within *= v[j];
      }
      const float earlier = before_in_team(within, all, t.size, product{}) * stretches;
      stretches *= all;
#pragma unroll
      for (int j = 0; j < run; ++j) others[j] *= earlier;
      if constexpr (BACK) {
        load_stretch<f32, WIDE, BACK>(a.before, begin, p, a.n, 1.0f, v);
#pragma unroll
        for (int j = 0; j < run; ++j) v[j] = d * (v[j] * others[j]);
        store_stretch<T, WIDE, BACK>(a.dx, begin, p, a.n, v);
      } else {
        store_stretch<f32, WIDE, BACK>(a.before, begin, p, a.n, others);
      }
    }
  }
}
template <int T, bool BACK> __device__ inline void prod_grad(const prod_grad_operands& a) {
  if (a.wide) prod_grad<T, true, BACK>(a);
  else prod_grad<T, false, BACK>(a);
}
extern "C" __global__ void __launch_bounds__(256) prod_before_f32(const __grid_constant__ prod_grad_operands a) {
  prod_grad<f32, false>(a);
}
extern "C" __global__ void __launch_bounds__(256) prod_before_bf16(const __grid_constant__ prod_grad_operands a) {
  prod_grad<bf16, false>(a);
}
extern "C" __global__ void __launch_bounds__(256) prod_before_f16(const __grid_constant__ prod_grad_operands a) {
  prod_grad<f16, false>(a);
}
extern "C" __global__ void __launch_bounds__(256) prod_grad_f32(const __grid_constant__ prod_grad_operands a) { prod_grad<f32, true>(a); }
extern "C" __global__ void __launch_bounds__(256) prod_grad_bf16(const __grid_constant__ prod_grad_operands a) { prod_grad<bf16, true>(a); }
extern "C" __global__ void __launch_bounds__(256) prod_grad_f16(const __grid_constant__ prod_grad_operands a) { prod_grad<f16, true>(a); }

}  // namespace isotope::cuda::gpu
