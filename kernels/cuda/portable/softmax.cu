// Softmax, its logarithm (logs) and their gradients along one axis: dx = y (dy - sum y dy), or dx = dy - e^y sum dy. Bound by bytes: rows
// that fit stay in the registers of a team; longer ones are read twice. Along an axis that is not the last, a thread takes a column.
#include "softmax.h"

#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

template <int T, bool WIDE, bool HELD> __device__ inline void softmax_row(const softmax_operands& a, const team& t, std::int64_t row) {
  constexpr int run = vector_elems<T>, hold = softmax_elems / run;
  const int n = int(a.n);
  const std::int64_t begin = row * n;
  row_part<T, WIDE, hold> part(n, t);
  const float none = -__uint_as_float(0x7f800000u);
  float v[hold][run], top = greater_of_two::neutral, total = 0.0f;
  for (; part.start < (HELD ? 1 : n); part.start += part.columns()) {
    part.load(a.x, begin, v, none);
    float most = top;
    for_part<hold, run>([&](int k, int j) { most = fmaxf(most, v[k][j]); });
    if (HELD) most = over_team(most, t.size, greater_of_two{});
    else total *= expf(top - most);
    top = most;
    for_part<hold, run>([&](int k, int j) {
      const float e = expf(v[k][j] - top);
      total += e;
      if (HELD && !a.logs) v[k][j] = e;
    });
  }
  if (!HELD) {
    const float all = over_team(top, t.size, greater_of_two{});
    total *= expf(top - all);
    top = all;
  }
  total = over_team(total, t.size, sum_of_two{});
  const float rest = a.logs ? logf(total) : total == 0.0f ? __uint_as_float(0x7fc00000u) : 1.0f / total;
  for (part.start = 0; part.start < (HELD ? 1 : n); part.start += part.columns()) {
    if (!HELD) part.load(a.x, begin, v, none);
    for_part<hold, run>([&](int k, int j) {
      if (a.logs) v[k][j] = (v[k][j] - top) - rest;
      else v[k][j] = (HELD ? v[k][j] : expf(v[k][j] - top)) * rest;
    });
    part.store(a.y, begin, v);
  }
}
template <int T> __device__ inline void softmax_row(const softmax_operands& a) {
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams)
    if (a.wide && a.held) softmax_row<T, true, true>(a, t, row);
    else if (a.held) softmax_row<T, false, true>(a, t, row);
    else if (a.wide) softmax_row<T, true, false>(a, t, row);
    else softmax_row<T, false, false>(a, t, row);
}
extern "C" __global__ void __launch_bounds__(512, 2) softmax_f32(const __grid_constant__ softmax_operands a) { softmax_row<f32>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) softmax_bf16(const __grid_constant__ softmax_operands a) { softmax_row<bf16>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) softmax_f16(const __grid_constant__ softmax_operands a) { softmax_row<f16>(a); }

template <int T, bool WIDE, bool HELD> __device__ inline void softmax_grad_row(const softmax_operands& a, const team& t, std::int64_t row) {
  constexpr int run = vector_elems<T>, hold = softmax_elems / run;
  const int n = int(a.n);
  const std::int64_t begin = row * n;
  row_part<T, WIDE, hold> part(n, t);
  float p[hold][run], g[hold][run], total = 0.0f;
  for (; part.start < (HELD ? 1 : n); part.start += part.columns()) {
    part.load(a.x, begin, p, 0.0f);
    part.load(a.dy, begin, g, 0.0f);
    for_part<hold, run>([&](int k, int j) { total += a.logs ? g[k][j] : p[k][j] * g[k][j]; });
  }
  total = over_team(total, t.size, sum_of_two{});
  for (part.start = 0; part.start < (HELD ? 1 : n); part.start += part.columns()) {
    if (!HELD) {
      part.load(a.x, begin, p, 0.0f);
      part.load(a.dy, begin, g, 0.0f);
    }
    for_part<hold, run>([&](int k, int j) { g[k][j] = a.logs ? g[k][j] - expf(p[k][j]) * total : p[k][j] * (g[k][j] - total); });
    part.store(a.y, begin, g);
  }
}
template <int T> __device__ inline void softmax_grad_row(const softmax_operands& a) {
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams)
    if (a.wide && a.held) softmax_grad_row<T, true, true>(a, t, row);
    else if (a.held) softmax_grad_row<T, false, true>(a, t, row);
    else if (a.wide) softmax_grad_row<T, true, false>(a, t, row);
    else softmax_grad_row<T, false, false>(a, t, row);
}
extern "C" __global__ void __launch_bounds__(512, 2) softmax_grad_f32(const __grid_constant__ softmax_operands a) {
  softmax_grad_row<f32>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) softmax_grad_bf16(const __grid_constant__ softmax_operands a) {
  softmax_grad_row<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) softmax_grad_f16(const __grid_constant__ softmax_operands a) {
  softmax_grad_row<f16>(a);
}

template <int T, bool GRADIENT> __device__ inline void softmax_column(const softmax_operands& a) {
  const std::int64_t column = item();
  if (column >= a.rows * a.inner) return;
  const std::int64_t begin = column / a.inner * a.n * a.inner + column % a.inner;
  float top = greater_of_two::neutral, total = 0.0f;
  for (std::int64_t k = 0; k < a.n; ++k) {
    const float v = get<T>(a.x, begin + k * a.inner);
    if (GRADIENT) {
      const float d = get<T>(a.dy, begin + k * a.inner);
      total += a.logs ? d : v * d;
    } else {
      const float most = fmaxf(top, v);
      total = total * expf(top - most) + expf(v - most);
      top = most;
    }
  }
  const float rest = a.logs ? logf(total) : total == 0.0f ? __uint_as_float(0x7fc00000u) : 1.0f / total;
  for (std::int64_t k = 0; k < a.n; ++k) {
    const std::int64_t i = begin + k * a.inner;
    const float v = get<T>(a.x, i);
    float r;
    if (GRADIENT) {
      const float d = get<T>(a.dy, i);
      r = a.logs ? d - expf(v) * total : v * (d - total);
    } else {
      r = a.logs ? (v - top) - rest : expf(v - top) * rest;
    }
    put<T>(a.y, i, r);
  }
}
extern "C" __global__ void __launch_bounds__(1024) softmax_columns_f32(const __grid_constant__ softmax_operands a) {
  softmax_column<f32, false>(a);
}
extern "C" __global__ void __launch_bounds__(1024) softmax_columns_bf16(const __grid_constant__ softmax_operands a) {
  softmax_column<bf16, false>(a);
}
extern "C" __global__ void __launch_bounds__(1024) softmax_columns_f16(const __grid_constant__ softmax_operands a) {
  softmax_column<f16, false>(a);
}
extern "C" __global__ void __launch_bounds__(1024) softmax_grad_columns_f32(const __grid_constant__ softmax_operands a) {
  softmax_column<f32, true>(a);
}
extern "C" __global__ void __launch_bounds__(1024) softmax_grad_columns_bf16(const __grid_constant__ softmax_operands a) {
  softmax_column<bf16, true>(a);
}
extern "C" __global__ void __launch_bounds__(1024) softmax_grad_columns_f16(const __grid_constant__ softmax_operands a) {
  softmax_column<f16, true>(a);
}

}  // namespace isotope::cuda::gpu
