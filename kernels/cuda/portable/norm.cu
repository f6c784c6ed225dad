// Layer normalisation (centered) and root-mean-square normalisation. Bound by bytes: a team reads its row once and keeps it in registers,
// so that the variance, a second pass over deviations, needs no second read; rows that are too long are read three times. Weight and bias
// come from the caches.
#include "norm.h"

#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

template <int T, bool WIDE, bool HELD> __device__ inline void normalise(const norm_operands& a, const team& t, std::int64_t row) {
  constexpr int run = vector_elems<T>, hold = norm_elems / run;
  const std::int64_t begin = row * a.C;
  row_part<T, WIDE, hold> part(a.C, t);
  float v[hold][run];
  if constexpr (HELD) part.load(a.x, begin, v, 0.0f);
  const auto each_part = [&](const auto& f) {
    if constexpr (HELD) {
      f();
    } else {
      for (part.start = 0; part.start < a.C; part.start += part.columns()) {
        part.load(a.x, begin, v, 0.0f);
        f();
      }
    }
  };
  float mean = 0.0f;
  if (a.centered) {
    each_part([&] { for_part<hold, run>([&](int k, int j) { mean += v[k][j]; }); });
    mean = over_team(mean, t.size, sum_of_two{}) / float(a.C);
  }
  float squares = 0.0f;
  each_part([&] {
    for_part<hold, run>([&](int k, int j) {
      const float d = v[k][j] - mean;
      if (part.inside(k, j)) squares = fmaf(d, d, squares);
    });
  });
  const float rstd = 1.0f / sqrtf(over_team(squares, t.size, sum_of_two{}) / float(a.C) + a.epsilon);
  each_part([&] {
#pragma unroll
    for (int k = 0; k < hold; ++k) {
      float w[run] = {}, b[run] = {};
      part.load_some_as(a.weight_type, a.weight, k, w);
      if (a.centered) part.load_some_as(a.bias_type, a.bias, k, b);
#pragma unroll
      for (int j = 0; j < run; ++j) v[k][j] = (v[k][j] - mean) * rstd * w[j] + b[j];
      part.store_some(a.y + std::uint64_t(begin * element_bytes<T>), k, v[k]);
    }
  });
  if (t.lane != 0) return;
  if (a.centered) pointer<float>(a.means)[row] = mean;
  pointer<float>(a.rstds)[row] = rstd;
}
template <int T> __device__ inline void normalise(const norm_operands& a) {
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams)
    if (a.wide && a.held) normalise<T, true, true>(a, t, row);
    else if (a.held) normalise<T, false, true>(a, t, row);
    else if (a.wide) normalise<T, true, false>(a, t, row);
    else normalise<T, false, false>(a, t, row);
}

extern "C" __global__ void __launch_bounds__(512, 2) norm_f32(const __grid_constant__ norm_operands a) { normalise<f32>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) norm_bf16(const __grid_constant__ norm_operands a) { normalise<bf16>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) norm_f16(const __grid_constant__ norm_operands a) { normalise<f16>(a); }

}  // namespace isotope::cuda::gpu
