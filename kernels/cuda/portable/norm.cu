// Layer normalisation (centered) and root-mean-square normalisation. Bound by bytes: a team reads its row once and keeps it in registers,
// so that the variance, a second pass over deviations, needs no second read; rows that are too long are read three times. Weight and bias
// come from the caches. Short rows have kernels of their own, in which a warp takes several rows at a time.
#include "norm.h"

#include "../device/early.cuh"
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
  start_dependents();
  wait_for_dependencies();
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

/// A warp takes ROWS rows at a time. A lane holds HOLD vectors of each, packed. SAME: weight and bias have the format of x, and all rows
/// use one copy of them in registers.
template <int T, int HOLD, int ROWS, bool SAME> __device__ inline void normalise_short(const norm_operands& a) {
  constexpr int run = vector_elems<T>;
  const int lane = int(threadIdx.x % 32), warps = int(blockDim.x / 32);
  const auto column = [&](int k) { return (k * 32 + lane) * run; };
  uint4 weight[HOLD], bias[HOLD];
#pragma unroll
  for (int k = 0; k < HOLD; ++k) {
    weight[k] = bias[k] = make_uint4(0, 0, 0, 0);
    if (!SAME || column(k) >= a.C) continue;
    weight[k] = *pointer<const uint4>(a.weight + column(k) * element_bytes<T>);
    if (a.centered) bias[k] = *pointer<const uint4>(a.bias + column(k) * element_bytes<T>);
  }
  const std::int64_t step = std::int64_t(gridDim.x) * warps * ROWS;
  for (std::int64_t row = (std::int64_t(blockIdx.x) * warps + threadIdx.x / 32) * ROWS; row < a.rows; row += step) {
    uint4 x[ROWS][HOLD];
    float mean[ROWS] = {}, rstd[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int k = 0; k < HOLD; ++k) {
        x[r][k] = make_uint4(0, 0, 0, 0);
        if (column(k) < a.C && row + r < a.rows)
          x[r][k] = *pointer<const uint4>(a.x + std::uint64_t((row + r) * a.C + column(k)) * element_bytes<T>);
      }
    const auto over_rows = [&](float(&sum)[ROWS]) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) sum[r] = over_warp(sum[r], sum_of_two{}) / float(a.C);
    };
    if (a.centered) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int k = 0; k < HOLD; ++k) {
          float v[run];
          unpack<T>(x[r][k], v);
#pragma unroll
          for (int j = 0; j < run; ++j) mean[r] += v[j];
        }
      over_rows(mean);
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int k = 0; k < HOLD; ++k) {
        if (column(k) >= a.C) continue;
        float v[run];
        unpack<T>(x[r][k], v);
#pragma unroll
        for (int j = 0; j < run; ++j) rstd[r] = fmaf(v[j] - mean[r], v[j] - mean[r], rstd[r]);
      }
    over_rows(rstd);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) rstd[r] = 1.0f / sqrtf(rstd[r] + a.epsilon);
#pragma unroll
    for (int k = 0; k < HOLD; ++k) {
      if (column(k) >= a.C) continue;
      float w[run], b[run] = {};
      if constexpr (SAME) {
        keep_packed(weight[k]);
        keep_packed(bias[k]);
        unpack<T>(weight[k], w);
        unpack<T>(bias[k], b);
      } else {
        load_run<run>(a.weight, column(k), a.weight_type, w);
        if (a.centered) load_run<run>(a.bias, column(k), a.bias_type, b);
      }
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        if (row + r >= a.rows) continue;
        float v[run];
        unpack<T>(x[r][k], v);
#pragma unroll
        for (int j = 0; j < run; ++j) v[j] = (v[j] - mean[r]) * rstd[r] * w[j] + b[j];
        *pointer<uint4>(a.y + std::uint64_t((row + r) * a.C + column(k)) * element_bytes<T>) = packed<T>(v);
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      if (lane == 0 && row + r < a.rows) {
        if (a.centered) pointer<float>(a.means)[row + r] = mean[r];
        pointer<float>(a.rstds)[row + r] = rstd[r];
      }
  }
}
template <int T, int COLUMNS> __device__ inline void normalise_short(const norm_operands& a) {
  start_dependents();
  wait_for_dependencies();
  constexpr int hold = COLUMNS / (32 * vector_elems<T>), k = COLUMNS / norm_short_step - 1;
  constexpr int rows = (T == f32 ? norm_short_of_f32 : norm_short_of_16_bits)[k].rows;
  if (hold <= 4 && a.weight_type == T && (!a.centered || a.bias_type == T)) normalise_short<T, hold, rows, hold <= 4>(a);
  else normalise_short<T, hold, rows, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) norm_up_to_256_f32(const __grid_constant__ norm_operands a) {
  normalise_short<f32, 256>(a);
}
extern "C" __global__ void __launch_bounds__(256, 6) norm_up_to_256_bf16(const __grid_constant__ norm_operands a) {
  normalise_short<bf16, 256>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) norm_up_to_256_f16(const __grid_constant__ norm_operands a) {
  normalise_short<f16, 256>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_up_to_512_f32(const __grid_constant__ norm_operands a) {
  normalise_short<f32, 512>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) norm_up_to_512_bf16(const __grid_constant__ norm_operands a) {
  normalise_short<bf16, 512>(a);
}
extern "C" __global__ void __launch_bounds__(256, 3) norm_up_to_512_f16(const __grid_constant__ norm_operands a) {
  normalise_short<f16, 512>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_up_to_768_f32(const __grid_constant__ norm_operands a) {
  normalise_short<f32, 768>(a);
}
extern "C" __global__ void __launch_bounds__(256, 4) norm_up_to_768_bf16(const __grid_constant__ norm_operands a) {
  normalise_short<bf16, 768>(a);
}
extern "C" __global__ void __launch_bounds__(256, 3) norm_up_to_768_f16(const __grid_constant__ norm_operands a) {
  normalise_short<f16, 768>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_up_to_1024_f32(const __grid_constant__ norm_operands a) {
  normalise_short<f32, 1024>(a);
}
extern "C" __global__ void __launch_bounds__(256, 3) norm_up_to_1024_bf16(const __grid_constant__ norm_operands a) {
  normalise_short<bf16, 1024>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_up_to_1024_f16(const __grid_constant__ norm_operands a) {
  normalise_short<f16, 1024>(a);
}

}  // namespace isotope::cuda::gpu
