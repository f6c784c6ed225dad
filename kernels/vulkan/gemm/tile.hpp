#pragma once
/// The tiles of matmul.comp, and which one is fastest for a gemm.
#include <algorithm>
#include <array>
#include <isotope/backend/vulkan/limits.hpp>
#include <isotope/kernels/vulkan/gemm/split.hpp>

namespace isotope::vulkan {

struct matmul_tile {
  std::uint32_t size;         // of a workgroup, along M and along N
  std::uint32_t slab;         // along K
  std::uint32_t side, teams;  // invocations of a team along M, and along N
  double filling;             // workgroups that keep a multiprocessor busy: its full speed divided by that of one alone
  double efficiency;          // fraction of the speed of the fastest tile, with many tiles on a full device

  constexpr std::int64_t area() const { return std::int64_t(size) * size; }
  constexpr std::int64_t count(std::int64_t M, std::int64_t N) const { return ((M + size - 1) / size) * ((N + size - 1) / size); }
  constexpr std::uint32_t invocations() const { return side * side * teams; }

  constexpr matmul_split::choice split(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t batches, const device_limits& d,
                                       std::int64_t parts) const {
    constexpr double flops_per_byte = 11;  // an H200: 46 TFLOP/s of the fastest tile against 4.2 TB/s
    return matmul_split::choose(count(M, N) * batches, area(), batches * M * N, K, slab,
                                {d.multiprocessors, filling, flops_per_byte, efficiency}, parts);
  }

  /// Whether matmul.comp takes it: whole blocks, teams with one block per invocation, moves that divide evenly, sums that fit where slabs were.
  constexpr bool fits() const {
    return size % (4 * side) == 0 && (teams == 1 || size == 4 * side) && slab % (16 * teams) == 0 && slab * size / 4 % invocations() == 0 &&
           slab >= side * teams;
  }

  static const std::array<matmul_tile, 3> all;
};

/// Measured on an H200; the last one with three of them on a multiprocessor (alone 0.46).
inline constexpr std::array<matmul_tile, 3> matmul_tile::all{{
    {128, 16, 16, 1, 1.13, 1.0},
    {64, 16, 16, 1, 1.4, 0.72},
    {32, 64, 8, 4, 1, 0.38},
}};
static_assert(std::ranges::all_of(matmul_tile::all, &matmul_tile::fits));

struct matmul_tile_choice {
  const matmul_tile* tile = nullptr;
  matmul_split::choice split;

  /// Returns the cheapest tile with its split of K. `in_one_order`: that adds up each sum along K, undivided, as every other such tile does.
  static constexpr matmul_tile_choice of(std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t batches, const device_limits& d,
                                         bool in_one_order = false) {
    matmul_tile_choice r;
    for (const auto& t : matmul_tile::all) {
      if (in_one_order && t.teams != 1) continue;
      const auto split = t.split(M, N, K, batches, d, in_one_order ? 1 : d.switches.split_k);
      if (r.tile == nullptr || split.cost < r.split.cost) r = {&t, split};
    }
    return r;
  }
};

}  // namespace isotope::vulkan
