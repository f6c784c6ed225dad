#pragma once
/// The tiles of portable/matmul.cu and native/matmul_mma.cu, and which one is fastest for a matmul.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <isotope/backend/cuda/limits.hpp>
#include <isotope/kernels/cuda/gemm/split.hpp>

namespace isotope::cuda {

struct matmul_tile {
  std::int64_t m, n, slab;  // slab: along K
  std::uint32_t threads;
  std::int64_t shared_bytes;                         // dynamic shared memory
  double filling;                                    // blocks that keep a multiprocessor busy: its full speed divided by that of one alone
  double efficiency;                                 // fraction of the speed of the fastest tile, with many tiles on a full device
  std::array<std::string_view, 4> f32, bf16, mixed;  // kernels by matmul_job::order: nn, nt, tn, tt
  std::int64_t together = 1;                         // blocks that share a multiprocessor from their start to their end

  constexpr std::int64_t count(std::int64_t M, std::int64_t N) const { return ((M + m - 1) / m) * ((N + n - 1) / n); }
};
struct matmul_size {
  std::int64_t M, N, K, batches;
};
struct matmul_tile_choice {
  const matmul_tile* tile = nullptr;
  matmul_split::choice split;

  /// Returns the split of K of a tile. `parts`: so many if they fit; 0: by cost. `flops_per_byte`: the fastest tile's speed by that of
  /// memory.
  static constexpr matmul_split::choice split_of(const matmul_tile& t, const matmul_size& s, const device_limits& d, double flops_per_byte,
                                                 std::int64_t parts) {
    return matmul_split::choose(t.count(s.M, s.N) * s.batches, t.m * t.n, s.batches * s.M * s.N, s.K, t.slab,
                                {d.multiprocessors, t.filling, flops_per_byte, t.efficiency, t.together}, parts);
  }
  /// Returns the cheapest of the tiles that fit into shared memory, with its split of K; none may fit. `parts`: as in split_of.
  static constexpr matmul_tile_choice of(std::span<const matmul_tile> tiles, const matmul_size& s, const device_limits& d,
                                         double flops_per_byte, std::int64_t parts) {
    matmul_tile_choice r;
    for (const auto& t : tiles) {
      if (t.shared_bytes > d.shared_bytes) continue;
      const auto split = split_of(t, s, d, flops_per_byte, parts);
      if (r.tile == nullptr || split.cost < r.split.cost) r = {&t, split};
    }
    return r;
  }
};

/// Tiles in f32 without tensor cores; the speeds are those of an H100.
inline constexpr std::array<matmul_tile, 3> simt_tiles{{
    {128,
     128,
     16,
     256,
     0,
     1,
     1.0,
     {"matmul_f32_128_nn", "matmul_f32_128_nt", "matmul_f32_128_tn", "matmul_f32_128_tt"},
     {"matmul_bf16_128_nn", "matmul_bf16_128_nt", "matmul_bf16_128_tn", "matmul_bf16_128_tt"},
     {}},
    {64,
     64,
     16,
     256,
     0,
     1.4,
     0.72,
     {"matmul_f32_64_nn", "matmul_f32_64_nt", "matmul_f32_64_tn", "matmul_f32_64_tt"},
     {"matmul_bf16_64_nn", "matmul_bf16_64_nt", "matmul_bf16_64_tn", "matmul_bf16_64_tt"},
     {"matmul_mixed_64_nn", "matmul_mixed_64_nt", "matmul_mixed_64_tn", "matmul_mixed_64_tt"}},
    {32,
     32,
     64,
     256,
     0,
     1,
     0.38,
     {"matmul_f32_32_nn", "matmul_f32_32_nt", "matmul_f32_32_tn", "matmul_f32_32_tt"},
     {"matmul_bf16_32_nn", "matmul_bf16_32_nt", "matmul_bf16_32_tn", "matmul_bf16_32_tt"},
     {}},
}};
inline constexpr double simt_flops_per_byte = 12;  // 40 TFLOP/s against 3.3 TB/s

/// Tiles of portable/matmul_whole.cu, for f32 operands without a remainder. Their efficiency is relative to that of the first of
/// simt_tiles.
inline constexpr std::array<matmul_tile, 2> whole_tiles{{
    {128,
     128,
     16,
     128,
     32 << 10,
     2,
     1.235,
     {"matmul_whole_16x8_nn", "matmul_whole_16x8_nt", "matmul_whole_16x8_tn", "matmul_whole_16x8_tt"},
     {},
     {},
     2},
    {128,
     128,
     16,
     256,
     64 << 10,
     1,
     1.23,
     {"matmul_whole_8x8_nn", "matmul_whole_8x8_nt", "matmul_whole_8x8_tn", "matmul_whole_8x8_tt"},
     {},
     {},
     1},
}};

/// Tiles of mma.sync. The sizes in shared memory are those of the stages, which are larger than the sums. On an H100, tiles of 128 x 256 were
/// slower than those of 128 x 128, two of which share a multiprocessor.
inline constexpr std::array<matmul_tile, 2> mma_tiles{{
    {128,
     128,
     64,
     128,
     3 * 32 << 10,
     1.6,
     1.0,
     {},
     {"matmul_mma_large_nn", "matmul_mma_large_nt", "matmul_mma_large_tn", "matmul_mma_large_tt"},
     {}},
    {64,
     64,
     64,
     128,
     4 * 16 << 10,
     2,
     0.7,
     {},
     {"matmul_mma_small_nn", "matmul_mma_small_nt", "matmul_mma_small_tn", "matmul_mma_small_tt"},
     {}},
}};
inline constexpr double mma_flops_per_byte = 120;  // 400 TFLOP/s against 3.3 TB/s

}  // namespace isotope::cuda
