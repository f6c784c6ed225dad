#pragma once
/// The tiles of matmul.comp, and which of them fit a gemm, and how long they take.
#include <algorithm>
#include <array>
#include <isotope/backend/vulkan/limits.hpp>
#include <isotope/kernels/vulkan/gemm/split.hpp>
#include <string>
#include <string_view>

namespace isotope::vulkan {

struct matmul_problem {
  std::int64_t M, N, K, batches;
  const device_limits* device;
  bool in_one_order = false;  // every tile is to add up each sum along K in the same order, undivided
};
/// How a split stands behind the name of a tile.
inline std::string parts_text(const matmul_split::choice& c) { return c.parts == 1 ? "" : ", K in " + std::to_string(c.parts) + " parts"; }

struct matmul_tile {
  std::uint32_t size;         // of a workgroup, along M and along N
  std::uint32_t slab;         // along K
  std::uint32_t side, teams;  // invocations of a team along M, and along N
  double filling;             // workgroups that keep a multiprocessor busy: its full speed divided by that of one alone
  double efficiency;          // fraction of the speed of the fastest tile, with many tiles on a full device

  constexpr std::int64_t area() const { return std::int64_t(size) * size; }
  constexpr std::int64_t count(std::int64_t M, std::int64_t N) const { return ((M + size - 1) / size) * ((N + size - 1) / size); }
  constexpr std::uint32_t invocations() const { return side * side * teams; }

  /// Returns the split of K: so many parts if they fit; 0: the fastest.
  constexpr matmul_split::choice split(const matmul_problem& p, std::int64_t parts) const {
    constexpr double flops_per_byte = 11, speed = 46e12 / 132;  // an H200: 46 TFLOP/s of the fastest tile against 4.2 TB/s
    return matmul_split::choose(count(p.M, p.N) * p.batches, area(), p.batches * p.M * p.N, p.K, slab,
                                {p.device->multiprocessors, filling, flops_per_byte, efficiency, speed}, parts);
  }

  constexpr std::string_view unfit(const matmul_problem& p) const {
    return p.in_one_order && teams != 1 ? "its teams share K, and rows are to have the same bits however many there are" : "";
  }
  constexpr matmul_split::choice cost_of(const matmul_problem& p) const {
    return split(p, p.in_one_order ? 1 : p.device->switches.split_k);
  }
  std::string name(const matmul_split::choice& c) const {
    return std::to_string(size) + " x " + std::to_string(size) + ", slabs of " + std::to_string(slab) + parts_text(c);
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

}  // namespace isotope::vulkan
