#pragma once
/// Divides a chunk of a native gemm into cells of C, one for each task: at least eight where the shape allows. By shape alone, so that the time of the tasks
/// follows from it (choice.hpp).
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct gemm_cells {
  std::int64_t across, down;   // of a cell: panels of the packed axis, or of B by columns; rows of the other operand
  std::int64_t columns, rows;  // of cells
  constexpr std::int64_t count() const { return columns * rows; }

  /// The cells of gemm_by_rows.
  /// @param v, r        lengths of the packed axis and of the streamed axis in a chunk
  /// @param depth       of a block of K
  /// @param in_place    sums go to C at once, not to a tile that waits for its epilogue
  /// @param transposes  each column of cells transposes all rows again
  template <class Operands>
  static constexpr gemm_cells by_rows(std::int64_t v, std::int64_t r, std::int64_t batches, std::int64_t depth, bool in_place,
                                      bool transposes) {
    constexpr std::int64_t block_panels = Operands::block_rows / blocking::cols;
    const vector_panels panels(v);
    std::int64_t across = larger_of(1, block_panels * blocking::depth * Operands::per_step / depth),
                 down = in_place ? Operands::block_rows : 0;
    if (!in_place) {
      across = smaller(across, 2 * block_panels);  // keeps the rows of narrow results whole: the fused body handles several at a time
      const std::int64_t wide = larger_of(lanes, smaller(across * blocking::cols, panels.start(panels.count())));
      down = blocking::tile_floats / wide / Operands::tile_rows * Operands::tile_rows;
    }
    // Narrows cells before it lowers them, unless rows would be transposed again.
    const std::int64_t low = transposes ? Operands::tile_rows : 4 * Operands::tile_rows;
    while (divide_up(panels.count(), across) * divide_up(r, down) * batches < 8) {
      if (across > 1 && down <= low) across /= 2;
      else if (down > Operands::tile_rows) down = whole(down / 2, Operands::tile_rows);
      else break;
    }
    return even(panels.count(), across, r, down, Operands::tile_rows);
  }
  /// The cells of gemm_by_columns: `v` rows of A by `r` columns of B.
  template <class Operands> static constexpr gemm_cells by_columns(std::int64_t v, std::int64_t r, std::int64_t batches, bool in_place) {
    const vector_panels panels(r);
    std::int64_t down = Operands::block_rows, across = in_place ? 6 : blocking::tile_floats / down / blocking::cols;
    while (divide_up(v, down) * divide_up(panels.count(), across) * batches < 8) {
      if (across > 1) across /= 2;
      else if (down > 2 * Operands::tile_rows) down = whole(down / 2, Operands::tile_rows);
      else break;
    }
    return even(panels.count(), across, v, down, Operands::tile_rows);
  }

 private:
  static constexpr gemm_cells even(std::int64_t panels, std::int64_t across, std::int64_t rows, std::int64_t down, std::int64_t unit) {
    across = even_part(panels, across, 1);
    down = even_part(rows, down, unit);
    return {across, down, divide_up(panels, across), divide_up(rows, down)};
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
