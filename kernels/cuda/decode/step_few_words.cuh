#pragma once
// Parts of rows that clusters pass on through global memory, four numbers at a time. The last bit of each number says whether it is that of this exchange or of the one before,
// so a number says by itself that it has come, however many of them an instruction moves. Readers take the bit for 0, so that results do not depend on it.
#include "device/cluster.cuh"

namespace isotope::cuda::gpu {

/// Adds four numbers each of Count parts, `apart` bytes apart, in their order, once all of them have the mark.
template <int Count> __device__ inline void add_marked(float4& sum, std::uint64_t at, std::uint32_t apart, std::uint32_t mark) {
  uint4 part[Count];
#pragma unroll
  for (int p = 0; p < Count; ++p) part[p] = {}, load_marked(at + p * apart, true, part[p]);
  std::uint32_t missing;
  do {
    missing = 0;
#pragma unroll
    for (int p = 0; p < Count; ++p) {
      const uint4& x = part[p];
      const std::uint32_t differs = ((x.x ^ mark) | (x.y ^ mark) | (x.z ^ mark) | (x.w ^ mark)) & 1u;
      missing |= differs;
      load_marked(at + p * apart, differs != 0, part[p]);
    }
  } while (missing != 0);
  const auto number = [](std::uint32_t bits) { return __uint_as_float(bits & ~1u); };
#pragma unroll
  for (int p = 0; p < Count; ++p)
    sum.x += number(part[p].x), sum.y += number(part[p].y), sum.z += number(part[p].z), sum.w += number(part[p].w);
}

}  // namespace isotope::cuda::gpu
