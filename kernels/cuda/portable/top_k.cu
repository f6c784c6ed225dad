// The k largest elements of each row and their indices: a team per row. Each thread knows the largest of its own elements that was not
// found yet, each warp that of its threads, and the largest of these is found k times. Then the warp that had it looks through the
// elements of one thread again. Bound by bytes for small k, else by the time of a search in a block.
#include "scan.h"

#include "../rows/order.cuh"

namespace isotope::cuda::gpu {

/// The largest key of the warp, for all its lanes.
__device__ inline std::uint64_t greatest_of_warp(std::uint64_t key) { return greatest(key, 32); }

template <int T> __device__ inline void top_k(const top_k_operands& a) {
  const team t(a.team);
  const int warps = t.size / 32, lane = int(threadIdx.x % 32), warp = t.lane / 32;
  __shared__ std::uint64_t keys[2][32];  // of the warps, for one pass and for the next
  for (std::int64_t row = t.row; row < a.rows; row += t.teams) {
    const std::int64_t begin = row * a.n;
    std::uint64_t last = 0;  // the order of an element, followed by the complement of its index
    // The largest of every step-th element from the first one on that is behind the one found last.
    const auto search = [&](int first, int step, bool all) {
      std::uint64_t best = 0;
#pragma unroll 8
      for (int i = first; i < a.n; i += step) {
        const std::uint64_t key = std::uint64_t(order_of(get<T>(a.x, begin + i), false, true)) << 32 | ~std::uint32_t(i);
        if ((all || key < last) && key > best) best = key;
      }
      return best;
    };
    std::uint64_t own = search(t.lane, t.size, true), of_warp = greatest_of_warp(own);
    for (int pass = 0; pass < a.k; ++pass) {
      last = of_warp;
      if (warps > 1) {
        if (lane == 0) keys[pass % 2][warp] = of_warp;
        __syncthreads();
        last = greatest_of_warp(lane < warps ? keys[pass % 2][lane] : 0);
      }
      const std::uint32_t place = ~std::uint32_t(last);
      if (t.lane == 0) {
        put<T>(a.values, row * a.k + pass, get<T>(a.x, begin + place));
        pointer<std::uint32_t>(a.places)[row * a.k + pass] = place;
      }
      if (of_warp != last) continue;
      const int owner = int(place) % t.size;
      if (warps > 1) {
        const std::uint64_t next = greatest_of_warp(search(owner + lane * t.size, 32 * t.size, false));
        if (t.lane == owner) own = next;
      } else if (lane == owner) {
        own = search(lane, t.size, false);  // a few elements
      }
      of_warp = greatest_of_warp(own);
    }
    if (warps > 1) __syncthreads();
  }
}
extern "C" __global__ void __launch_bounds__(1024) top_k_f32(const __grid_constant__ top_k_operands a) { top_k<f32>(a); }
extern "C" __global__ void __launch_bounds__(1024) top_k_bf16(const __grid_constant__ top_k_operands a) { top_k<bf16>(a); }
extern "C" __global__ void __launch_bounds__(1024) top_k_f16(const __grid_constant__ top_k_operands a) { top_k<f16>(a); }

}  // namespace isotope::cuda::gpu
