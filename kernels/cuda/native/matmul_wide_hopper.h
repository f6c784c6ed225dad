#pragma once
// The arguments of matmul_wide_hopper.cu; included by host and device code.
#include <cstdint>

#include "../device/hopper.h"

namespace isotope::cuda::gpu {

/// y (M, N) = alpha x w with at most 64 rows: x is (M, K), and w has K elements for each of N columns. K has `slabs` slabs of 64; the ring has `stages` stages.
struct matmul_wide {
  static constexpr int rows = 64, columns = 128, slab = 64, threads = 288;              // of a tile, along K, of a block
  static constexpr int slab_bytes = rows * slab * 2, stage_bytes = columns * slab * 2;  // of x, of w
  static constexpr int line = 64 + 8;                                                   // elements of a row of results in shared memory
  static constexpr int result_bytes = columns / 64 * rows * line * 2, barrier_bytes = 256;
  static constexpr int most_stages = 12;

  tensor_map_bytes w, x;
  std::uint64_t y;
  std::int32_t M, N, slabs, stages;
  float alpha;
};

}  // namespace isotope::cuda::gpu
