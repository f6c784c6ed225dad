// Sorts ids with their positions, one digit per pass, in two launches: id_count counts how often each digit occurs in each block of
// pairs; id_place moves the pairs to their places. A place is the number of smaller digits everywhere, plus that of equal digits in
// earlier blocks, in earlier warps of the block, and earlier in the warp, which ballots give. Every block adds up the counts of all
// blocks itself. Counters are integers, so their order does not matter.
#include "embedding.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

/// The id in x, the position in y.
__device__ inline uint2 pair_at(const id_sort_operands& a, std::int64_t i) {
  if (a.shift > 0) return pointer<const uint2>(a.from)[i];
  const std::uint32_t id = pointer<const std::uint32_t>(a.from)[i];
  return make_uint2(id < a.V ? id : a.V, std::uint32_t(i));
}
__device__ inline int digit_of(uint2 pair, int shift) { return int((pair.x >> shift) & (sort_digits - 1)); }

extern "C" __global__ void __launch_bounds__(256) id_count(const __grid_constant__ id_sort_operands a) {
  __shared__ std::uint32_t count[sort_digits];
  const int lane = int(threadIdx.x);
  count[lane] = 0;
  __syncthreads();
  for (int k = 0; k < a.items; ++k) {
    const std::int64_t i = (std::int64_t(blockIdx.x) * a.items + k) * sort_threads + lane;
    if (i < a.n) atomicAdd(&count[digit_of(pair_at(a, i), a.shift)], 1u);
  }
  __syncthreads();
  pointer<std::uint32_t>(a.counts)[std::int64_t(blockIdx.x) * sort_digits + lane] = count[lane];
}

extern "C" __global__ void __launch_bounds__(256) id_place(const __grid_constant__ id_sort_operands a) {
  constexpr int warps = sort_threads / 32;
  __shared__ std::uint32_t totals[sort_digits];          // of each digit, over all blocks
  __shared__ std::uint32_t places[warps * sort_digits];  // the next place of each digit of each warp
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32, own = warp * sort_digits;
  // A warp has `items` runs of 32 pairs, one after another.
  const std::int64_t start = (std::int64_t(blockIdx.x) * sort_threads + warp * 32) * a.items + lane;
  std::uint32_t before = 0, all = 0;
#pragma unroll 4
  for (int b = 0; b < a.blocks; ++b) {
    const std::uint32_t c = pointer<const std::uint32_t>(a.counts)[std::int64_t(b) * sort_digits + thread];
    before += b < int(blockIdx.x) ? c : 0;
    all += c;
  }
  totals[thread] = all;
  for (int w = 0; w < warps; ++w) places[w * sort_digits + thread] = w == 0 ? before : 0;
  __syncthreads();
  // Each warp counts its digits for the next warp.
  for (int k = 0; k < a.items; ++k)
    if (start + k * 32 < a.n && warp + 1 < warps) atomicAdd(&places[own + sort_digits + digit_of(pair_at(a, start + k * 32), a.shift)], 1u);
  __syncthreads();
  std::uint32_t sum = 0;
  for (int e = 0; e < thread; ++e) sum += totals[e];
  for (int w = 0; w < warps; ++w) {
    sum += places[w * sort_digits + thread];
    places[w * sort_digits + thread] = sum;
  }
  __syncthreads();
  for (int k = 0; k < a.items; ++k) {
    const bool there = start + k * 32 < a.n;
    const uint2 pair = there ? pair_at(a, start + k * 32) : make_uint2(0, 0);
    const int digit = digit_of(pair, a.shift);
    unsigned same = __ballot_sync(0xffffffffu, there);  // the lanes that have this one's digit
    for (int bit = 1; bit < sort_digits; bit *= 2) {
      const unsigned votes = __ballot_sync(0xffffffffu, (digit & bit) != 0);
      same &= (digit & bit) != 0 ? votes : ~votes;
    }
    const int rank = __popc(same & ((1u << lane) - 1));
    const std::uint32_t place = there ? places[own + digit] : 0;
    __syncwarp();
    if (there && rank == 0) places[own + digit] = place + std::uint32_t(__popc(same));
    __syncwarp();
    if (there) pointer<uint2>(a.to)[place + std::uint32_t(rank)] = pair;
  }
}

}  // namespace isotope::cuda::gpu
