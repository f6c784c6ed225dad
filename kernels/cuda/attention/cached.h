#pragma once
// The arguments of portable/attention_cached.cu and native/attention_cached_hopper.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Threads of a block, and rows of a plan that may be appended by the kernel that attends to them.
inline constexpr int cached_threads = 256, cached_most_appended = 64;

/// Threads of a block that fills rings by bulk copies (cached_copies.cuh), blocks of a multiprocessor, and the stages of a warp's ring.
inline constexpr int copied_threads = 128, copied_blocks = 3, copied_stages = 4, copied_stage_bytes = 4096;
inline constexpr int copied_ring_bytes = copied_threads / 32 * copied_stages * copied_stage_bytes;
/// Shared memory of a block: rings, barriers, and two buffers of sums, with 8 columns for each of the LANES threads that hold a position together.
inline constexpr int copied_fixed_bytes = copied_ring_bytes + 512, copied_bytes_of_lane = 2 * copied_threads / 32 * 8 * 4;

struct cached_heads {
  std::uint64_t q, y;                // (N, H D)
  std::uint64_t keys, values;        // (B, G, T, D)
  std::uint64_t k, v;                // (N, G D): rows that this kernel adds to the caches before it attends to them; 0: there are none
  std::uint64_t sequence, position;  // (N) i32
  std::uint64_t parts;               // sums of splits in f32, where blocks do not exchange them: see portable/attention_cached.cu
  std::int64_t q_stride, y_stride, k_stride, v_stride;  // of rows, in elements
  std::int64_t N, B, T;
  std::int32_t G, D, repeats, blocks;  // repeats: query heads of a key-value head; blocks: how many of QUERIES heads they are
  std::int32_t splits;                 // of the positions of a query: the chunks of split s are s, s + splits, ...
  std::int32_t window;                 // most keys that a query sees; 0: no window
  std::int32_t
      prefetched;  // stages of each warp that cached_copies.cuh reads into the L2 cache, behind those that its ring has, before it waits
  float scale;     // of scores, times log2(e)
};

}  // namespace isotope::cuda::gpu
