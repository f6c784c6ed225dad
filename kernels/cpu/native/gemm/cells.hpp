#pragma once
/// Divides a native product into cells of C, one for each task.
///
/// The sizes of cells follow from the shape, and in some products from the number of threads, so that the time of the tasks follows from them (choice.hpp). An
/// element's bits do not depend on its cell.
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

inline std::int64_t threads_of(const launch& l) { return l.pool == nullptr ? 1 : l.pool->size(); }
/// The cells of a product that is divided for its threads: so many for each of several.
constexpr std::int64_t cells_for(std::int64_t threads, std::int64_t each = 4) { return threads == 1 ? 1 : each * threads; }

/// Nanoseconds on one thread of a product with `steps` steps of the microkernel along K, by which threads take part: as few steps as eight take longer.
constexpr double product_nsec(std::int64_t batches, std::int64_t M, std::int64_t N, std::int64_t steps) {
  return double(batches) * double(M) * double(larger_of(steps, 8)) * (0.1 + double(N) / 60.0);
}

/// Rows [m, m + rows) and panels [p0, p1) of a batch.
struct gemm_cell {
  std::int64_t batch, m, rows, p0, p1;
};

/// How C is divided; the last cells of an axis may be smaller.
class gemm_cells {
 public:
  std::int64_t panels, height;  // to divide: panels of one axis, rows of the other one
  std::int64_t across, down;    // of a cell: panels and rows

  constexpr gemm_cells(std::int64_t all_panels, std::int64_t all_rows, std::int64_t wide, std::int64_t high)
      : panels(all_panels),
        height(all_rows),
        across(wide),
        down(high),
        columns_(divide_up(panels, across)),
        rows_(divide_up(height, down)) {}
  constexpr std::int64_t columns() const { return columns_; }
  constexpr std::int64_t rows() const { return rows_; }
  constexpr std::int64_t count() const { return columns_ * rows_; }
  /// Return cell t of all batches: neighbours share rows, or panels.
  constexpr gemm_cell by_rows(std::int64_t t) const { return at(t / columns_ / rows_, t / columns_ % rows_, t % columns_); }
  constexpr gemm_cell by_panels(std::int64_t t) const { return at(t / rows_ / columns_, t % rows_, t / rows_ % columns_); }

  /// Makes cells smaller until there are `wanted`, if they may be.
  ///
  /// @param narrower  narrower(across, down): the panels of a smaller cell; 0 if it is to have fewer rows instead
  /// @param unit      halved rows are a multiple of it
  /// @param lowest    cells of at most so many rows are not halved
  template <class F> constexpr gemm_cells divided(std::int64_t wanted, const F& narrower, std::int64_t unit, std::int64_t lowest) const {
    gemm_cells c = *this;
    while (c.count() < wanted) {
      if (const std::int64_t some = narrower(c.across, c.down); some > 0) c = {panels, height, some, c.down};
      else if (c.down > lowest) c = {panels, height, c.across, whole(divide_up(c.down, 2), unit)};
      else break;
    }
    return c;
  }
  /// As many cells of even sizes, at most as large.
  constexpr gemm_cells even(std::int64_t unit) const {
    return {panels, height, even_part(panels, across, 1), even_part(height, down, unit)};
  }

  /// Returns the cells of gemm_by_rows: at least eight where the shape allows.
  /// @param v, r        lengths of the packed axis and of the streamed axis in a chunk
  /// @param depth       of a block of K
  /// @param in_place    sums go to C at once, not to a tile that waits for its epilogue
  /// @param transposes  each column of cells transposes all rows again
  template <class Operands>
  static constexpr gemm_cells of_rows(std::int64_t v, std::int64_t r, std::int64_t batches, std::int64_t depth, bool in_place,
                                      bool transposes) {
    constexpr std::int64_t block_panels = Operands::block_rows / blocking::cols, unit = Operands::tile_rows;
    const vector_panels panels(v);
    std::int64_t across = larger_of(1, block_panels * blocking::depth * Operands::per_step / depth),
                 down = in_place ? Operands::block_rows : 0;
    if (!in_place) {
      across = smaller(across, 2 * block_panels);  // keeps the rows of narrow results whole: the fused body handles several at a time
      const std::int64_t wide = larger_of(lanes, smaller(across * blocking::cols, panels.start(panels.count())));
      down = blocking::tile_floats / wide / unit * unit;
    }
    // Narrows cells before it lowers them, unless rows would be transposed again.
    const std::int64_t low = transposes ? unit : 4 * unit;
    const auto narrower = [=](std::int64_t a, std::int64_t d) { return d <= low ? a / 2 : 0; };
    return gemm_cells{panels.count(), r, across, down}.divided(divide_up(8, batches), narrower, unit, unit).even(unit);
  }
  /// Returns the cells of gemm_by_columns, also at least eight: `v` rows of A by `r` columns of B.
  template <class Operands> static constexpr gemm_cells of_columns(std::int64_t v, std::int64_t r, std::int64_t batches, bool in_place) {
    constexpr std::int64_t down = Operands::block_rows, unit = Operands::tile_rows;
    const std::int64_t across = in_place ? 6 : blocking::tile_floats / down / blocking::cols;
    return gemm_cells{vector_panels(r).count(), v, across, down}.divided(divide_up(8, batches), halved, unit, 2 * unit).even(unit);
  }
  static constexpr std::int64_t halved(std::int64_t across, std::int64_t) { return across / 2; }

 private:
  std::int64_t columns_, rows_;  // of cells

  constexpr gemm_cell at(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    const std::int64_t m = row * down, p = column * across;
    return {batch, m, smaller(down, height - m), p, smaller(panels, p + across)};
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
