// flags: -fmad=false
//
// Draws classes in proportion to softmax(x / temperature), one team per row, with weights and sums in f64. Bound by exp. The row is divided
// into stretches, one for each warp, whose sums tell in which stretch the running sum passes the wanted number; that stretch is divided
// again, until it has 32 classes, whose running sums a warp computes.
#include "categorical.h"

#include "../reference/f64.cuh"
#include "../reference/philox.cuh"
#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

__device__ inline double sum_over_warp(double x) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(all_lanes, x, step);
  return x;
}
/// The largest number of a row, -3.4e38 if there is none above. Loses NaN.
template <int T> __device__ inline float top_of(const categorical_operands& a, const team& t, std::int64_t begin) {
  float top = greater_of_two::neutral;
#pragma unroll 4
  for (int i = t.lane; i < a.n; i += t.size) top = fmaxf(top, get<T>(a.x, begin + i));
  return over_team(top, t.size, greater_of_two{});
}

template <int T> __device__ inline void categorical(const categorical_operands& a) {
  const team t(a.team);
  const int warps = t.size / 32, lane = int(threadIdx.x % 32), warp = warps == 1 ? 0 : int(threadIdx.x / 32);
  __shared__ double parts[32];
  for (std::int64_t row = t.row; row < a.rows; row += t.teams) {
    const std::int64_t from = row * a.n;
    const double top = double(top_of<T>(a, t, from));
    const auto weight = [&](int i) {
      const double x = double(get<T>(a.x, from + i)) - top;
      return exp(a.temperature == 1.0 ? x : x / a.temperature);
    };
    int begin = 0, end = a.n;
    double before = 0, wanted = 0;  // the sum of the classes before `begin`
    bool drawn = true;              // whether the running sum passes what is wanted at all: not where a logit is NaN or infinite
    for (bool whole = true; whole || (warps > 1 && end - begin > 32); whole = false) {
      const int length = ((end - begin + warps - 1) / warps + 31) / 32 * 32, first = begin + warp * length;
      double sum = 0;
#pragma unroll 2
      for (int i = first + lane; i < first + length && i < end; i += 32) sum += weight(i);
      sum = sum_over_warp(sum);
      if (warps > 1) {
        __syncthreads();
        if (lane == 0) parts[warp] = sum;
        __syncthreads();
      }
      const auto part = [&](int w) { return warps > 1 ? parts[w] : sum; };
      if (whole) {
        double total = 0;
        for (int w = 0; w < warps; ++w) total += part(w);
        const std::uint32_t word = random_word(*pointer<const scalars>(a.scalars), std::uint64_t(row), a.stream);
        wanted = (double(word) + 0.5) * 2.3283064365386963e-10 * total;  // 2^-32
        drawn = total > wanted;
      }
      int w = 0;  // the stretch in which the running sum passes it, or the last one
      for (; w + 1 < warps && begin + (w + 1) * length < end && !(before + part(w) > wanted); ++w) before += part(w);
      begin += w * length;
      end = begin + length < end ? begin + length : end;
    }
    if (warp != 0) continue;
    int found = a.n - 1;
    for (int i = begin + lane; drawn && i - lane < a.n; i += 32) {
      double through = i < a.n ? weight(i) : 0.0;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(all_lanes, through, step);
        if (lane >= step) through += other;
      }
      through += before;
      const unsigned passed = __ballot_sync(all_lanes, through > wanted);
      if (passed != 0) {
        const int at = i - lane + __ffs(int(passed)) - 1;
        found = at < a.n ? at : found;
        break;
      }
      before = __shfl_sync(all_lanes, through, 31);
    }
    if (lane == 0) pointer<std::int32_t>(a.y)[row] = found;
  }
}
extern "C" __global__ void __launch_bounds__(1024) categorical_f32(const __grid_constant__ categorical_operands a) { categorical<f32>(a); }
extern "C" __global__ void __launch_bounds__(1024) categorical_bf16(const __grid_constant__ categorical_operands a) {
  categorical<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(1024) categorical_f16(const __grid_constant__ categorical_operands a) { categorical<f16>(a); }

}  // namespace isotope::cuda::gpu
