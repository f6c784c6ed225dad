#pragma once
/// The panels of f32 weights that gemm_by_panels multiplies, and the cells into which it divides products.
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The packed layout of a weight (N, K): panels of `cols` rows of W, which are columns of its transpose, one k after another; the last panel has fewer vectors,
/// padded with zeros.
class weight_panels {
 public:
  // 8 x 48 takes 24 sums and 3 vectors of 32 registers, 35 instructions for 24 multiply-adds, where 12 x 32 takes 38: as fast alone, and faster where another
  // thread shares the core.
  static constexpr std::int64_t vectors = config::vector_registers >= 32 ? 3 : 2, cols = vectors * lanes;
  static constexpr std::int64_t rows = config::vector_registers >= 32 ? 8 : 6;  // of x in a register tile

  constexpr weight_panels(std::int64_t N, std::int64_t K) : N_(N), K_(K) {}
  constexpr std::int64_t elements() const { return whole(N_, lanes) * K_; }
  constexpr std::int64_t count() const { return divide_up(N_, cols); }
  /// Returns the number of the first row of panel p.
  static constexpr std::int64_t start(std::int64_t p) { return p * cols; }
  /// Returns the width of panel p in whole vectors.
  constexpr std::int64_t width(std::int64_t p) const { return smaller(cols, whole(N_ - start(p), lanes)); }
  /// Returns how many rows of W panel p has.
  constexpr std::int64_t elems(std::int64_t p) const { return smaller(cols, N_ - start(p)); }
  /// Returns the place of term k of panel p.
  constexpr std::int64_t at(std::int64_t p, std::int64_t k) const { return start(p) * K_ + k * width(p); }

  /// Packs panel p of a weight with contiguous rows.
  void pack(const float* w, std::int64_t p, float* packed) const {
    pack_right(w + start(p) * K_, 1, K_, K_, elems(p), width(p), packed + at(p, 0));
  }
  /// Packs terms [k0, k0 + k) of panel p of a weight whose rows are `stride` apart.
  void pack(const float* w, std::int64_t stride, std::int64_t p, std::int64_t k0, std::int64_t k, float* packed) const {
    pack_right(w + start(p) * stride + k0, 1, stride, k, elems(p), width(p), packed);
  }

 private:
  std::int64_t N_, K_;
};

/// The cells of a product with panels: high, so that a panel that comes from memory, or is packed, meets many rows. Where a panel that is packed already has several
/// blocks, in each of which it meets the rows again, or there are more rows than one cell has, the rows of a cell stay in L2: 1 % and 3 %.
struct panel_cells {
  static constexpr std::int64_t tile_floats = blocking::tile_floats;
  static constexpr std::int64_t most_rows = 528 / weight_panels::rows * weight_panels::rows;
  static constexpr std::int64_t rows_in_l2 = whole(96, weight_panels::rows);
  static_assert(most_rows * weight_panels::cols <= tile_floats && rows_in_l2 <= most_rows);

  /// At least four for each of several threads, where the shape allows.
  /// @param most  rows of a cell
  static constexpr gemm_cells of(std::int64_t M, std::int64_t N, std::int64_t batches, std::int64_t threads, std::int64_t most) {
    constexpr std::int64_t unit = weight_panels::rows;
    const std::int64_t panels = weight_panels(N, 0).count(), down = larger_of(1, smaller(most, M));
    const gemm_cells all{panels, M, smaller(tile_floats / (whole(down, unit) * weight_panels::cols), panels), down};
    const auto narrower = [](std::int64_t a, std::int64_t) { return a > 1 ? divide_up(a, 2) : 0; };
    return all.divided(divide_up(cells_for(threads), batches), narrower, unit, 2 * unit).even(unit);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
