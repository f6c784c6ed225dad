// Gradients of layer normalisation (centered) and root-mean-square normalisation. Bound by bytes: one read of x and dy, one write of dx. A
// block walks a range of rows in teams, each of which takes `flight` rows at a time; each thread holds one vector of a row, and its column
// sums of dy h and dy stay in registers until the end, when the block adds its teams to a row of `partial`; column_sum.cu adds these rows
// in order, beside the next kernel, which needs only dx: where the last block added them, that kernel waited 3 us longer. Rows that are
// too long for a block are read twice: norm_grad_weights takes column sums, norm_grad_rows then computes dx, which may overwrite x or dy.
// norm_grad_sums also adds up the columns of dx: the gradient of the bias of the linear layer before the norm.
#include "norm.h"

#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

/// Adds the addend to dx, which has been rounded to its format.
template <int T, bool WIDE, int HOLD>
__device__ inline void store_sum(const norm_grad_operands& a, const row_part<T, WIDE, HOLD>& part, std::int64_t begin,
                                 float (&v)[HOLD][vector_elems<T>]) {
  if (a.addend != 0) {
    float more[HOLD][vector_elems<T>];
    part.load(a.addend, begin, more, 0.0f);
    for_part<HOLD, vector_elems<T>>([&](int k, int j) { v[k][j] = rounded(v[k][j], T) + more[k][j]; });
  }
  part.store(a.dx, begin, v);
}

/// The 16 bytes of a row that a thread holds; 0 outside the row.
template <int T, bool WIDE> __device__ inline uint4 packed_run(const row_part<T, WIDE, 1>& part, std::uint64_t base, std::int64_t begin) {
  const std::uint64_t row = base + std::uint64_t(begin * element_bytes<T>);
  if constexpr (WIDE) {
    return part.inside(0, 0) ? *pointer<const uint4>(row + std::uint64_t(part.column(0, 0)) * element_bytes<T>) : make_uint4(0, 0, 0, 0);
  } else {
    float v[vector_elems<T>] = {};
    part.template load_some<T>(row, 0, v);
    return packed<T>(v);
  }
}

/// Adds the numbers that format T stores for v.
template <int T> __device__ inline void add_stored(const float (&v)[vector_elems<T>], float (&sum)[vector_elems<T>]) {
  float stored[vector_elems<T>];
  unpack<T>(packed<T>(v), stored);
#pragma unroll
  for (int j = 0; j < vector_elems<T>; ++j) sum[j] += stored[j];
}

/// N numbers of the block, the same ones in every call.
template <int N> __device__ inline float* shared_floats() {
  __shared__ __align__(16) float all[N];
  return all;
}

template <int T, bool WIDE, int FLIGHT, int THREADS, bool SUMS> __device__ inline void norm_grad(const norm_grad_operands& a) {
  constexpr int run = vector_elems<T>;
  team t(a.team);
  t.lane = int(threadIdx.x) % a.team;
  const int own = int(threadIdx.x) / a.team, teams = int(blockDim.x) / a.team;
  const row_part<T, WIDE, 1> part(a.C, t);
  float w[1][run], dweight[run] = {}, dbias[run] = {}, dx_sum[run] = {};  // dx_sum: of SUMS alone
  part.load_as(a.weight_type, a.weight, 0, w, 0.0f);
  const float share = 1.0f / float(a.C);
  const std::int64_t first = a.rows * blockIdx.x / a.parts, end = a.rows * (blockIdx.x + 1) / a.parts;
  int turn = 0;
  const int count = int(end - first);
  for (int next = 0; next < count; next += teams * FLIGHT, turn ^= 1) {
    const std::int64_t row = first + next + own * FLIGHT;
    const int left = count - next - own * FLIGHT;
    uint4 x[FLIGHT], dy[FLIGHT], more[FLIGHT];  // packed, as registers are scarce: what is computed from them is computed twice
    float mean[FLIGHT], rstd[FLIGHT], sums[2 * FLIGHT] = {};
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f) {
      const bool there = f < left;
      mean[f] = a.centered && there ? pointer<const float>(a.means)[row + f] : 0.0f;
      rstd[f] = there ? pointer<const float>(a.rstds)[row + f] : 0.0f;
      x[f] = dy[f] = more[f] = make_uint4(0, 0, 0, 0);
      if (!there) continue;
      x[f] = packed_run(part, a.x, (row + f) * a.C);
      dy[f] = packed_run(part, a.dy, (row + f) * a.C);
      if (WIDE && FLIGHT <= 2 && a.addend != 0) more[f] = packed_run(part, a.addend, (row + f) * a.C);
    }
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f) {
      float h[run], d[run];
      unpack<T>(x[f], h);
      unpack<T>(dy[f], d);
#pragma unroll
      for (int j = 0; j < run; ++j) {
        const float n = (h[j] - mean[f]) * rstd[f], e = d[j] * w[0][j];
        dweight[j] = fmaf(d[j], n, dweight[j]);
        dbias[j] += d[j];
        sums[2 * f] += e;
        sums[2 * f + 1] = fmaf(e, n, sums[2 * f + 1]);
      }
    }
    over_team_in_turn(sums, a.team, turn, sum_of_two{});
#pragma unroll
    for (int f = 0; f < FLIGHT; ++f) {
      if (f >= left) continue;
      const float avg_e = a.centered ? sums[2 * f] * share : 0.0f, avg_eh = sums[2 * f + 1] * share;
      float h[run], v[1][run];
      unpack<T>(x[f], h);
      unpack<T>(dy[f], v[0]);
#pragma unroll
      for (int j = 0; j < run; ++j) v[0][j] = rstd[f] * (v[0][j] * w[0][j] - avg_e - (h[j] - mean[f]) * rstd[f] * avg_eh);
      if (WIDE && FLIGHT <= 2) {
        if (a.addend != 0) {
          unpack<T>(more[f], h);
#pragma unroll
          for (int j = 0; j < run; ++j) v[0][j] = rounded(v[0][j], T) + h[j];
        }
        part.store(a.dx, (row + f) * a.C, v);
      } else {
        store_sum(a, part, (row + f) * a.C, v);
      }
      if constexpr (SUMS) add_stored<T>(v[0], dx_sum);
    }
  }
  if constexpr (THREADS > 0) {
    if (teams > 1) {
      float* const others = shared_floats<(SUMS ? 3 : 2) * run * THREADS>();
#pragma unroll
      for (int j = 0; j < run; ++j) {
        others[j * THREADS + threadIdx.x] = dweight[j];
        others[(run + j) * THREADS + threadIdx.x] = dbias[j];
        if constexpr (SUMS) others[(2 * run + j) * THREADS + threadIdx.x] = dx_sum[j];
      }
      __syncthreads();
      if (own > 0) return;
      for (int other = 1; other < teams; ++other)
#pragma unroll
        for (int j = 0; j < run; ++j) {
          dweight[j] += others[j * THREADS + other * a.team + t.lane];
          dbias[j] += others[(run + j) * THREADS + other * a.team + t.lane];
          if constexpr (SUMS) dx_sum[j] += others[(2 * run + j) * THREADS + other * a.team + t.lane];
        }
    }
  }
  const int kinds = (a.centered ? 2 : 1) + (SUMS ? 1 : 0);
  const auto give = [&](int kind, const float(&sum)[run]) {  // whole vectors, since the block's last stores are waited for
    const std::uint64_t to = a.partial + 4 * (std::uint64_t(blockIdx.x) * kinds + kind) * a.C;
    if constexpr (WIDE) {
      if (part.inside(0, 0)) store_run<f32, run>(to, part.column(0, 0), sum);
    } else {
#pragma unroll
      for (int j = 0; j < run; ++j)
        if (part.inside(0, j)) pointer<float>(to)[part.column(0, j)] = sum[j];
    }
  };
  give(0, dweight);
  if (a.centered) give(1, dbias);
  if constexpr (SUMS) give(kinds - 1, dx_sum);
}
/// THREADS: those of the largest block of several teams, or 0 if a block is one team.
template <int T, int FLIGHT, int THREADS, bool SUMS = false> __device__ inline void norm_grad(const norm_grad_operands& a) {
  if (a.wide) norm_grad<T, true, FLIGHT, THREADS, SUMS>(a);
  else norm_grad<T, false, (FLIGHT + 1) / 2, THREADS, SUMS>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_grad_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f32, norm_grad_of_f32.rows_at_once, norm_grad_of_f32.threads>(a);
}
extern "C" __global__ void __launch_bounds__(288, 2) norm_grad_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<bf16, norm_grad_of_16_bits.rows_at_once, norm_grad_of_16_bits.threads>(a);
}
extern "C" __global__ void __launch_bounds__(288, 2) norm_grad_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f16, norm_grad_of_16_bits.rows_at_once, norm_grad_of_16_bits.threads>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_large_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f32, 1, 0>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_large_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<bf16, 1, 0>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_large_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f16, 1, 0>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) norm_grad_sums_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f32, norm_grad_of_f32.rows_at_once, norm_grad_of_f32.threads, true>(a);
}
extern "C" __global__ void __launch_bounds__(288, 2) norm_grad_sums_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<bf16, norm_grad_of_16_bits.rows_at_once, norm_grad_of_16_bits.threads, true>(a);
}
extern "C" __global__ void __launch_bounds__(288, 2) norm_grad_sums_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f16, norm_grad_of_16_bits.rows_at_once, norm_grad_of_16_bits.threads, true>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_sums_large_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f32, 1, 0, true>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) norm_grad_sums_large_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<bf16, 1, 0, true>(a);
}
extern "C" __global__ void __launch_bounds__(384, 2) norm_grad_sums_large_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad<f16, 1, 0, true>(a);
}

/// A thread adds one column over a range of rows.
template <int T> __device__ inline void norm_grad_weights(const norm_grad_operands& a) {
  const std::int64_t c = item();
  if (c >= a.C) return;
  float dweight = 0.0f, dbias = 0.0f;
  const std::int64_t first = a.rows * blockIdx.y / a.parts, end = a.rows * (blockIdx.y + 1) / a.parts;
#pragma unroll 4
  for (std::int64_t row = first; row < end; ++row) {
    const float mean = a.centered ? pointer<const float>(a.means)[row] : 0.0f, d = get<T>(a.dy, row * a.C + c);
    dweight = fmaf(d, (get<T>(a.x, row * a.C + c) - mean) * pointer<const float>(a.rstds)[row], dweight);
    dbias += d;
  }
  const std::uint64_t to = a.partial + 4 * std::uint64_t(blockIdx.y) * (a.centered ? 2 : 1) * a.C;
  pointer<float>(to)[c] = dweight;
  if (a.centered) pointer<float>(to)[a.C + c] = dbias;
}
extern "C" __global__ void __launch_bounds__(256) norm_grad_weights_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad_weights<f32>(a);
}
extern "C" __global__ void __launch_bounds__(256) norm_grad_weights_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad_weights<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(256) norm_grad_weights_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad_weights<f16>(a);
}

template <int T, bool WIDE> __device__ inline void norm_grad_rows(const norm_grad_operands& a) {
  constexpr int run = vector_elems<T>;
  const team t(int(blockDim.x));
  row_part<T, WIDE, 1> part(a.C, t);
  const std::int64_t row = blockIdx.x, begin = row * a.C;
  const float mean = a.centered ? pointer<const float>(a.means)[row] : 0.0f, rstd = pointer<const float>(a.rstds)[row];
  float h[1][run], g[1][run], w[1][run], sums[2] = {};
  const auto take = [&] {
    part.load(a.x, begin, h, 0.0f);
    part.load(a.dy, begin, g, 0.0f);
    part.load_as(a.weight_type, a.weight, 0, w, 0.0f);
    for_part<1, run>([&](int k, int j) {
      h[k][j] = (h[k][j] - mean) * rstd;
      g[k][j] *= w[k][j];
    });
  };
  for (part.start = 0; part.start < a.C; part.start += part.columns()) {
    take();
    for_part<1, run>([&](int k, int j) {
      sums[0] += g[k][j];
      sums[1] = fmaf(g[k][j], h[k][j], sums[1]);
    });
  }
  over_team(sums, t.size, sum_of_two{});
  const float avg_e = a.centered ? sums[0] / float(a.C) : 0.0f, avg_eh = sums[1] / float(a.C);
  for (part.start = 0; part.start < a.C; part.start += part.columns()) {
    take();
    for_part<1, run>([&](int k, int j) { g[k][j] = rstd * (g[k][j] - avg_e - h[k][j] * avg_eh); });
    store_sum(a, part, begin, g);
  }
}
template <int T> __device__ inline void norm_grad_rows(const norm_grad_operands& a) {
  if (a.wide) norm_grad_rows<T, true>(a);
  else norm_grad_rows<T, false>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_rows_f32(const __grid_constant__ norm_grad_operands a) {
  norm_grad_rows<f32>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_rows_bf16(const __grid_constant__ norm_grad_operands a) {
  norm_grad_rows<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(1024) norm_grad_rows_f16(const __grid_constant__ norm_grad_operands a) {
  norm_grad_rows<f16>(a);
}

}  // namespace isotope::cuda::gpu
