#pragma once
/// The tiles of portable/matmul.cu and native/matmul_mma.cu, and how long they take for a matmul.
#include <algorithm>
#include <array>
#include <span>
#include <string>
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
/// How fast a list of tiles is: `rate`, the fastest tile's flops in the time of one byte of memory traffic; `speed`, its flops a second on one multiprocessor.
struct tile_rates {
  double rate, speed;
};
/// Returns the split of K of a tile. `parts`: so many if they fit; 0: the fastest.
constexpr matmul_split::choice split_of(const matmul_tile& t, const matmul_size& s, const device_limits& d, const tile_rates& rates,
                                        std::int64_t parts) {
  return matmul_split::choose(t.count(s.M, s.N) * s.batches, t.m * t.n, s.batches * s.M * s.N, s.K, t.slab,
                              {d.multiprocessors, t.filling, rates.rate, t.efficiency, rates.speed, t.together}, parts);
}
inline std::string name_of(const matmul_tile& t, const matmul_split::choice& c) {
  return std::to_string(t.m) + " x " + std::to_string(t.n) + " by " + std::to_string(t.threads) + " threads, slabs of " +
         std::to_string(t.slab) + (c.parts == 1 ? "" : ", K in " + std::to_string(c.parts) + " parts");
}

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
inline constexpr tile_rates simt_rates{12, 40e12 / 132};  // an H100: 40 TFLOP/s against 3.3 TB/s

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
inline constexpr tile_rates mma_rates{120, 400e12 / 132};  // an H100: 400 TFLOP/s against 3.3 TB/s

/// A tile of mma.sync as a variant of a kernel.
struct mma_variant {
  const matmul_tile* tile;
  struct problem {
    matmul_size size;
    const device_limits* device;
    std::int64_t parts;  // of K; 0: the fastest
  };
  constexpr std::string_view unfit(const problem& p) const {
    return tile->shared_bytes > p.device->shared_bytes ? "it takes more shared memory than a block has" : "";
  }
  constexpr matmul_split::choice cost_of(const problem& p) const { return split_of(*tile, p.size, *p.device, mma_rates, p.parts); }
  std::string name(const matmul_split::choice& c) const { return name_of(*tile, c); }
};
inline constexpr std::array<mma_variant, 2> mma_variants{{{&mma_tiles[0]}, {&mma_tiles[1]}}};

}  // namespace isotope::cuda
