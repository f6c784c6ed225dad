#pragma once
/// Chooses the tile, the cluster and the division of work of matmul_hopper.cu by an estimate of its time.
#include <algorithm>
#include <array>
#include <cstdint>

namespace isotope::cuda {

/// The tile of a block is 128 rows by `columns`.
struct matmul_hopper_choice {
  std::int32_t columns = 0, cluster = 1;
  std::int64_t per = 0;  // slabs of a cluster where work items are divided; 0: they are whole
  double cost = 0;       // clocks

  static constexpr std::int64_t slab = 64, rows = 128;
  static constexpr std::array<std::int32_t, 3> widths{256, 192, 128};

  struct problem {
    std::int64_t M = 0, N = 0, K = 0;
    std::int64_t multiprocessors = 132;
    std::int64_t room = 0;  // bytes for partial sums; 0: work items are never divided
    bool direct = false;    // y is written from registers
  };

  std::int64_t row_tiles(std::int64_t M) const { return (M + rows * cluster - 1) / (rows * cluster); }
  std::int64_t column_tiles(std::int64_t N) const { return (N + columns - 1) / columns; }
  std::int64_t items(const problem& p) const { return row_tiles(p.M) * column_tiles(p.N); }
  static std::int64_t slabs(const problem& p) { return (p.K + slab - 1) / slab; }
  std::int64_t clusters(const problem& p) const {
    const std::int64_t work = per == 0 ? items(p) : (items(p) * slabs(p) + per - 1) / per;
    return std::min(work, p.multiprocessors / cluster);
  }
  /// Stages that fit into 227 KB beside the sums in bf16.
  std::int32_t stages(bool direct) const {
    const std::int32_t stage = 128 * (128 + columns), sums = direct ? 0 : 256 * columns;
    return std::min((232448 - 256 - sums) / stage, 8);
  }
  std::int64_t shared_bytes(bool direct) const {
    return std::int64_t(stages(direct)) * 128 * (128 + columns) + (direct ? 0 : 256 * columns) + 256;
  }
  std::int64_t threads() const { return columns == 256 ? 384 : 512; }
  static std::int64_t partial_bytes(std::int64_t blocks, std::int32_t columns) { return blocks * 2 * rows * columns * 4; }

  /// The cheapest choice. `wanted`: only this width.
  static matmul_hopper_choice of(const problem& p, std::int32_t wanted = 0) {
    matmul_hopper_choice best;
    for (const std::int32_t columns : widths)
      for (const std::int32_t cluster : {2, 1}) {
        if (wanted != 0 && columns != wanted) continue;
        matmul_hopper_choice c{columns, cluster};
        c.estimate(p);
        if (best.columns == 0 || c.cost < best.cost) best = c;
      }
    return best;
  }

  /// Sets per and cost.
  void estimate(const problem& p) {
    const std::int64_t all = p.multiprocessors / cluster, n = items(p), k = slabs(p);
    const double of_slab = 4.0 * columns * (columns == 256 ? 1.0 : columns == 192 ? 1.04 : 1.12) * (cluster == 2 ? 1.0 : 1.1);
    const double of_tile = p.direct ? 2500 : 700, once = 4000;  // the sums of the last tile and the first stages wait for memory
    cost = double((n + all - 1) / all) * (double(k) * of_slab + of_tile) + once;
    per = 0;
    if (p.room < partial_bytes(all * cluster, columns)) return;
    const std::int64_t share = (n * k + all - 1) / all;
    if (share < 8 || n * k > (std::int64_t(1) << 30)) return;
    const double sums = 2.0 * double(partial_bytes(std::min(all * cluster, n * cluster * 2), columns)) / 1500;
    const double divided = double(share) * of_slab + 2 * of_tile + once + 6000 + sums;
    if (divided < cost) {
      cost = divided;
      per = share;
    }
  }
};

}  // namespace isotope::cuda
