#pragma once
/// Normalisations of 17 to 64 rows that the product behind them does (native/matmul_rows_normed_hopper.cu), as in decoding of many sequences. The weights times the gain are rounded
/// where a launch of its own rounds the normalised rows, so results differ from those of separate launches in roundings.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <isotope/kernels/cuda/native/matmul_rows_normed_hopper.h>
#include <isotope/fatbins/matmul_rows_hopper.hpp>
#include <isotope/fatbins/matmul_rows_normed_hopper.hpp>
#include <isotope/fatbins/matmul_rows_tile.hpp>
#include <isotope/kernels/cuda/joined/joined.hpp>

namespace isotope::cuda {

/// Removes each normalisation that only one such product reads. `kept`: bytes that are read after the run.
class row_norms {
 public:
  static constexpr std::int64_t least_rows = 17, most_rows = 64;

  row_norms(std::vector<dispatch>& all, const range& kept, const device_limits& device) : all_(all), kept_(kept) {
    if (!device.hopper() || !fatbins::matmul_rows_normed_hopper.there()) return;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) join(i, device);
  }

 private:
  static constexpr std::int64_t C = gpu::matmul_rows_normed_depth;
  struct tile {
    std::string_view function;
    std::int64_t most_rows, rows, columns;
  };
  static constexpr std::array<tile, 2> tiles{tile{"matmul_rows_normed_16x48", 32, 16, 48},
                                             tile{"matmul_rows_normed_32x48", most_rows, 32, 48}};
  std::vector<dispatch>& all_;
  range kept_;

  std::optional<gpu::norm_operands> norm_at(std::size_t i) const {
    constexpr auto bf16 = std::int32_t(dtype::bf16);
    const auto n = arguments_in<gpu::norm_operands>(all_[i], fatbins::norm);
    const bool takes = n && all_[i].function.ends_with("_bf16") && n->C == C && n->centered != 0 && n->weight_type == bf16 &&
                       n->bias_type == bf16 && n->rows >= least_rows && n->rows <= most_rows;
    if (!takes || n->x % 16 != 0 || n->weight % 16 != 0 || n->bias % 16 != 0) return {};
    return n;
  }
  std::optional<gpu::gemm> product_at(std::size_t i, const gpu::norm_operands& n) const {
    auto g = arguments_in<gpu::gemm>(all_[i], fatbins::matmul_rows_tile);
    if (!g) g = arguments_in<gpu::gemm>(all_[i], fatbins::matmul_rows_hopper);
    const bool takes = g && (g->fast == gpu::case_bias || g->fast == gpu::case_bias_gelu) && g->rows == n.rows && g->depth == C &&
                       g->a.at == n.y && g->a.line == C && g->parts == 1 && g->batches == 1 && g->norm.on == 0;
    if (!takes) return {};
    return g;
  }
  /// Joins launch i with the one behind it.
  void join(std::size_t i, const device_limits& device) {
    const auto n = norm_at(i);
    auto g = n ? product_at(i + 1, *n) : std::optional<gpu::gemm>();
    if (!g) return;
    for (const range& w : all_[i].writes)
      if (w.overlaps(kept_) || !joined::read_once(all_, i, i + 1, w)) return;
    const auto fits = [&](const tile& t) {
      const std::int64_t down = (g->rows + t.rows - 1) / t.rows;
      return g->rows <= t.most_rows && g->columns % t.columns == 0 && down * (g->columns / t.columns) <= device.multiprocessors;
    };
    const auto t = std::find_if(tiles.begin(), tiles.end(), fits);
    if (t == tiles.end()) return;
    dispatch& d = all_[i + 1];
    const range x(n->x, 2 * n->rows * C), y(n->y, 2 * n->rows * C), gain(n->weight, 2 * C), shift(n->bias, 2 * C);
    if (joined::touches(d.writes, x)) return;
    g->a.at = n->x;
    g->norm = {n->weight, n->bias, 1, 1, n->epsilon};
    std::memcpy(d.arguments.data(), &*g, sizeof *g);
    d.code = &fatbins::matmul_rows_normed_hopper, d.function = t->function;
    d.count = per_block(g->columns / t->columns, 32 * gpu::matmul_rows_normed_warps,
                        gpu::matmul_rows_normed_bytes(int(t->rows), int(t->columns)));
    d.count.y = std::uint32_t((g->rows + t->rows - 1) / t->rows);
    d.default_threads = d.count.threads;
    std::erase_if(d.reads, [&](const range& r) { return r.overlaps(y); });
    d.reads.insert(d.reads.end(), {x, gain, shift});
    d.early.insert(d.early.end(), {range(g->operands[0].at, 2 * g->columns), gain, shift});
    d.joined = all_[i].step;
    all_.erase(all_.begin() + std::ptrdiff_t(i));
  }
};

}  // namespace isotope::cuda
