#pragma once
/// Chooses the tile, the cluster and the parts of K of matmul_hopper.cu by an estimate of its time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/plan/choose_kernel.hpp>

namespace isotope::cuda {

/// The tile of a block is 128 rows by `columns`.
struct matmul_hopper_choice {
  std::int32_t columns = 0, cluster = 1;
  std::int64_t parts = 1;  // of K
  double seconds = 0;      // predicted

  static constexpr std::int64_t slab = 64, rows = 128, most_parts = 16;

  struct problem {
    std::int64_t M = 0, N = 0, K = 0;
    std::int64_t multiprocessors = 132;
    std::int64_t room = 0;  // bytes for partial sums; 0: K is never divided
    bool f32 = false;       // the result
    int formula = 0;        // 1: the epilogue has GELU by tanh or its derivative, 2: GELU by erf
    bool summed = false;    // whether the epilogue sums columns, which only tiles of 128 columns do
  };

  static std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
  std::int64_t row_tiles(const problem& p) const { return ceiling(p.M, rows * cluster); }
  std::int64_t column_tiles(const problem& p) const { return ceiling(p.N, columns); }
  std::int64_t items(const problem& p) const { return row_tiles(p) * column_tiles(p); }
  static std::int64_t slabs(const problem& p) { return ceiling(p.K, slab); }
  std::int64_t per(const problem& p) const { return ceiling(slabs(p), parts); }
  std::int64_t clusters(const problem& p) const { return std::min(items(p) * parts, p.multiprocessors / cluster); }
  std::int64_t partial_bytes(const problem& p) const { return parts == 1 ? 0 : items(p) * parts * cluster * rows * columns * 4; }
  static constexpr std::int32_t summing_columns = 128;
  /// Bytes of shared memory for the sums of columns: two buffers with a float of each of seven warps.
  static std::int32_t summing_bytes(const problem& p) { return p.summed ? 2 * 7 * 4 * summing_columns : 0; }
  /// Buffers of sums in bf16. Two leave room for three stages of 256 columns, which is enough.
  std::int32_t sums(const problem& p) const { return p.f32 || parts > 1 ? 0 : 2; }
  std::int32_t stages(const problem& p) const {
    return std::min(std::int32_t(232448 - 256 - summing_bytes(p) - sums(p) * 128 * columns) / (128 * (128 + columns)), 8);
  }
  std::int64_t shared_bytes(const problem& p) const {
    return stages(p) * 128 * (128 + columns) + sums(p) * 128 * columns + 256 + summing_bytes(p);
  }
  std::int64_t threads() const { return columns == 256 ? 384 : 512; }

  /// The cheapest choice. @param considered  as in choose_kernel
  static matmul_hopper_choice of(const problem& p, kernel_choices* considered = nullptr);
  /// The cheapest choice of that tile.
  static matmul_hopper_choice of(const problem& p, std::int32_t columns, std::int32_t cluster) {
    matmul_hopper_choice best;
    for (std::int64_t parts = 1; parts <= most_parts; ++parts) {
      matmul_hopper_choice c{columns, cluster, parts};
      if (parts > 1 && (c.partial_bytes(p) > p.room || c.per(p) < 4 || (parts - 1) * c.per(p) >= slabs(p))) continue;
      c.estimate(p);
      if (parts == 1 || c.seconds < best.seconds) best = c;
    }
    return best;
  }

  /// Sets the time. Power limits a busy device: where a sixth of it is idle, the rest runs as much faster.
  void estimate(const problem& p) {
    constexpr double boost = 1.1, bytes_of_clock = 1100, launch = 6000, clock = 1.7e9;
    const std::int64_t all = p.multiprocessors / cluster, n = items(p) * parts;
    // Measured on an H100: where the epilogue has a formula, it bounds the kernel, and more warps with smaller tiles are faster.
    const std::size_t k = columns == 256 ? 0 : columns == 192 ? 1 : 2;
    constexpr std::array<std::array<double, 3>, 3> widths_of{{{1.0, 1.02, 1.06}, {1.12, 1.1, 1.0}, {1.3, 1.3, 1.0}}};
    const double width = widths_of[std::size_t(p.formula)][k];
    const double alone = cluster == 2 ? 1.0 : columns == 256 ? 1.06 : columns == 192 ? 1.18 : 1.3;  // more reads from the L2 cache
    const double unit = double(per(p)) * 4 * columns * width * alone + (sums(p) == 0 ? 2000 : 800);
    double clocks = std::max(unit * double(n) / double(all), double(ceiling(n, all)) * unit / boost) + 4000;
    if (parts > 1) clocks += launch + 2 * double(partial_bytes(p)) / bytes_of_clock;
    seconds = clocks / clock;
  }
};

/// A tile and a cluster of matmul_hopper.cu as a variant of the kernel.
struct matmul_hopper_variant {
  std::int32_t columns, cluster;

  std::string_view unfit(const matmul_hopper_choice::problem& p) const {
    return p.summed && columns != matmul_hopper_choice::summing_columns ? "only tiles of 128 columns sum columns" : "";
  }
  matmul_hopper_choice cost_of(const matmul_hopper_choice::problem& p) const { return matmul_hopper_choice::of(p, columns, cluster); }
  std::string name(const matmul_hopper_choice& c) const {
    return "128 x " + std::to_string(columns) + (cluster == 1 ? "" : " in clusters of " + std::to_string(cluster)) +
           (c.parts == 1 ? "" : ", K in " + std::to_string(c.parts) + " parts");
  }
};
inline constexpr std::array<matmul_hopper_variant, 6> matmul_hopper_variants{{{256, 2}, {256, 1}, {192, 2}, {192, 1}, {128, 2}, {128, 1}}};

inline matmul_hopper_choice matmul_hopper_choice::of(const problem& p, kernel_choices* considered) {
  return choose_kernel(matmul_hopper_variants, p, considered).cost;
}

}  // namespace isotope::cuda
