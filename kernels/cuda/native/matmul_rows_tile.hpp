#pragma once
/// The host side of matmul_rows_tile.cu and, on Hopper, matmul_rows_hopper.cu: products of bf16 operands with 17 to 64 rows, whose operands have lines along K.
#include <algorithm>

#include <isotope/kernels/cuda/native/matmul_rows_hopper.h>
#include <isotope/fatbins/matmul_rows_hopper.hpp>
#include <isotope/fatbins/matmul_rows_tile.hpp>
#include <isotope/kernels/cuda/gemm/job.hpp>

namespace isotope::cuda {

class matmul_rows_tile {
 public:
  explicit matmul_rows_tile(const matmul_job& j) : j_(j) {}

  bool takes() const {
    const matmul_shape& s = j_.s;
    const device_limits& d = *j_.given->device;
    const bool along_k = !s.a.cross && !s.b.cross && s.K % step == 0 && j_.aligned(s.a, 0) && j_.aligned(s.b, 1);
    return d.tensor_cores() && !d.switches.large_kernels && fatbins::matmul_rows_tile.there() && s.a.type == dtype::bf16 &&
           s.b.type == dtype::bf16 && along_k && s.batches() == 1 && s.pieces() == 1 && s.M >= least_rows && s.M <= most_rows &&
           finishes() && choose() != nullptr;
  }
  void record(recording& r) const {
    const tile& t = *choose();
    matmul_job::form f;
    const bool copies = j_.given->device->hopper() && fatbins::matmul_rows_hopper.there() && !t.by_copies.empty();
    f.code = copies ? &fatbins::matmul_rows_hopper : &fatbins::matmul_rows_tile;
    f.function = copies ? t.by_copies : t.function;
    f.across = down(t);
    f.tiles = blocks(t);
    f.threads = std::uint32_t(32 * t.warps);
    f.shared_bytes = t.warps * t.rows * (t.columns + 4) * 4;  // sums
    if (copies)
      f.shared_bytes = gpu::matmul_rows_hopper_first + std::max(f.shared_bytes, t.columns * (2 * j_.s.K + gpu::matmul_rows_hopper_pad));
    f.matrices = "bf16";
    f.starts_early = true;
    j_.add(r, f, {1, j_.s.K, 0});
  }

 private:
  struct tile {
    std::string_view function, by_copies;  // by_copies: of matmul_rows_hopper.cu; empty: it is slower
    std::int64_t rows, columns, depth, warps;
  };
  static constexpr std::array<tile, 4> tiles{tile{"matmul_rows_tile_16x48", "matmul_rows_hopper_16x48", 16, 48, 768, 8},
                                             {"matmul_rows_tile_32x48", "", 32, 48, 768, 8},
                                             {"matmul_rows_tile_deep_16x16", "matmul_rows_hopper_deep_16x16", 16, 16, 3072, 16},
                                             {"matmul_rows_tile_deep_32x16", "matmul_rows_hopper_deep_32x16", 32, 16, 3072, 8}};
  static constexpr std::int64_t step = 32, least_rows = 17, most_rows = 64;
  const matmul_job& j_;

  std::int64_t down(const tile& t) const { return (j_.s.M + t.rows - 1) / t.rows; }
  std::int64_t blocks(const tile& t) const { return down(t) * ((j_.s.N + t.columns - 1) / t.columns); }
  /// Whether finish_eight_by_case has the case of this product.
  bool finishes() const {
    const std::int32_t fast = j_.whole_arguments().fast;
    return fast == gpu::case_store_bf16 || (fast >= gpu::case_bias && fast <= gpu::case_bias_gelu);
  }
  /// The first tile whose blocks all run at once; null: there is none. On an H200, 64 rows take in a chain of equal products, in us (by
  /// matmul_small.cu): 768 x 2304 3.8 (4.4) and 768 x 3072 4.7 (4.8) with blocks of 32 x 48, 768 x 768 2.2 (3.9) with blocks of 16 x 48.
  const tile* choose() const {
    for (const tile& t : tiles)
      if (j_.s.K <= t.depth && (t.depth == tiles[0].depth || j_.s.K > tiles[0].depth) && blocks(t) <= j_.given->device->multiprocessors)
        return &t;
    return nullptr;
  }
};

}  // namespace isotope::cuda
