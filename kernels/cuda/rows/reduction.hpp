#pragma once
/// The axes of a reduction with neighbours merged, so that few shapes remain: rows (kept, summed), columns (kept, summed, kept).
#include <array>
#include <optional>

#include <isotope/kernels/cuda/portable/reduce.h>
#include <isotope/fatbins/reduce.hpp>

#include "rows.hpp"

namespace isotope::cuda::portable {

struct merged_reduction {
  struct axis {
    std::int64_t size = 1, stride = 0;
    bool summed = false;
  };
  std::array<axis, max_rank> axes{};
  int rank = 0;

  /// Takes the axes of x from the outermost on; those of the bit mask are summed.
  merged_reduction(const view& x, std::int64_t mask) {
    for (int k = 0; k < x.dims.rank; ++k) {
      const axis a{x.dims[k], x.strides[std::size_t(k)], ((mask >> k) & 1) != 0};
      if (a.size == 1) continue;
      axis* last = rank > 0 ? &axes[std::size_t(rank - 1)] : nullptr;
      if (last != nullptr && last->summed == a.summed && last->stride == a.size * a.stride)
        *last = {last->size * a.size, a.stride, a.summed};
      else axes[std::size_t(rank++)] = a;
    }
  }
  const axis& operator[](int k) const { return axes[std::size_t(k)]; }

  struct row_shape {
    std::int64_t rows = 1, n = 1, pitch = 0;
  };
  /// Returns rows of adjacent elements, each summed.
  std::optional<row_shape> rows() const {
    if (rank == 0) return row_shape{1, 1, 1};
    const axis& last = axes[std::size_t(rank - 1)];
    if (rank > 2 || !last.summed || last.stride != 1) return {};
    if (rank == 1) return row_shape{1, last.size, last.size};
    if (axes[0].summed || axes[0].stride < last.size) return {};
    return row_shape{axes[0].size, last.size, axes[0].stride};
  }
  /// Whether there is nothing to add and no gap.
  bool copies() const { return rank == 1 && !axes[0].summed && axes[0].stride == 1; }
  struct column_shape {
    std::int64_t batch = 1, rows = 1, cols = 1, pitch = 0, batch_pitch = 0;
  };
  /// Returns adjacent columns, summed over rows, in a batch.
  std::optional<column_shape> columns() const {
    if (rank < 2 || rank > 3) return {};
    const axis &last = axes[std::size_t(rank - 1)], &middle = axes[std::size_t(rank - 2)];
    if (last.summed || last.stride != 1 || !middle.summed || (rank == 3 && axes[0].summed)) return {};
    column_shape c{1, middle.size, last.size, middle.stride, 0};
    if (rank == 3) c.batch = axes[0].size, c.batch_pitch = axes[0].stride;
    return c;
  }
};

/// How rows are reduced: in one pass; in pieces if they are long and so few that they do not fill a device.
struct row_pieces {
  static constexpr std::int64_t piece = 16384, long_row = 32768, many_rows = 1024;
  static constexpr std::int64_t of(std::int64_t rows, std::int64_t n) {
    return n > longest_row || (n > long_row && rows < many_rows) ? divide_up(n, piece) : 1;
  }

  /// `terms`: what the results are divided by, if it is not 0.
  static gpu::row_operands operands(const launch& l, const merged_reduction::row_shape& s, const view& x, const view& y,
                                    std::int64_t pieces, float terms, grid& blocks) {
    const std::int64_t each = pieces == 1 ? s.n : piece, run = vector_elems(x.type);
    const row_team t = row_team::of(*l.device, s.rows * pieces, each, 32, 256);
    blocks = t.blocks;
    gpu::row_operands a{};
    a.x = x.at;
    a.y = y.at;
    a.results = s.rows * pieces;
    a.n = s.n;
    a.pitch = s.pitch;
    a.each = each;
    a.pieces = std::int32_t(pieces);
    a.team = t.size;
    a.wide = s.n % run == 0 && s.pitch % run == 0 && all_aligned(x);
    a.y_type = std::int32_t(y.type);
    a.terms = terms;
    return a;
  }
  static void pass(const launch& l, recording& r, const by_format& functions, const merged_reduction::row_shape& s, const view& x,
                   const view& y, std::int64_t pieces, float terms) {
    grid blocks;
    const gpu::row_operands a = operands(l, s, x, y, pieces, terms, blocks);
    r.add(fatbins::reduce, functions.of(x.type), a, blocks, {x}, {y});
  }
};
/// y = x reduced along its rows; the mean of the rows if `mean`. Scratch has 4 bytes for each piece.
inline void record_rows(const launch& l, recording& r, const by_format& functions, const merged_reduction::row_shape& s, const view& x,
                        const view& y, bool mean = false) {
  const float terms = mean ? float(s.n) : 0;
  const std::int64_t pieces = row_pieces::of(s.rows, s.n);
  if (pieces == 1) return row_pieces::pass(l, r, functions, s, x, y, 1, terms);
  view partial;
  partial.at = l.scratch;
  partial.bytes = 4 * s.rows * pieces;
  row_pieces::pass(l, r, functions, s, x, partial, pieces, 0);
  row_pieces::pass(l, r, functions, {s.rows, pieces, pieces}, partial, y, 1, terms);
}

}  // namespace isotope::cuda::portable
