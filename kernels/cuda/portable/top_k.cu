// The k largest elements of each row and their indices: a team per row, k passes, each for the largest element behind the one found
// before. Bound by bytes; passes after the first mostly hit a cache.
#include "scan.h"

#include "../rows/order.cuh"

namespace isotope::cuda::gpu {

template <int T> __device__ inline void top_k(const top_k_operands& a) {
  const team t(a.team);
  for (std::int64_t row = t.row; row < a.rows; row += t.teams) {
    const std::int64_t begin = row * a.n;
    std::uint64_t last = ~std::uint64_t(0);  // the order of an element, followed by the complement of its index
    for (int pass = 0; pass < a.k; ++pass) {
      std::uint64_t best = 0;
      for (int i = t.lane; i < a.n; i += t.size) {
        const std::uint64_t key = std::uint64_t(order_of(get<T>(a.x, begin + i), false, true)) << 32 | ~std::uint32_t(i);
        if ((pass == 0 || key < last) && key > best) best = key;
      }
      last = greatest(best, t.size);
      const std::uint32_t place = ~std::uint32_t(last);
      if (t.lane != 0) continue;
      put<T>(a.values, row * a.k + pass, get<T>(a.x, begin + place));
      pointer<std::uint32_t>(a.places)[row * a.k + pass] = place;
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) top_k_f32(const __grid_constant__ top_k_operands a) { top_k<f32>(a); }
extern "C" __global__ void __launch_bounds__(256) top_k_bf16(const __grid_constant__ top_k_operands a) { top_k<bf16>(a); }
extern "C" __global__ void __launch_bounds__(256) top_k_f16(const __grid_constant__ top_k_operands a) { top_k<f16>(a); }

}  // namespace isotope::cuda::gpu
