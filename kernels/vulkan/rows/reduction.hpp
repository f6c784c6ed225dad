#pragma once
/// The axes of a reduction with neighbours merged, so that few shapes remain: rows (kept, summed), columns (kept, summed, kept).
#include <array>
#include <optional>

#include "rows.hpp"

namespace isotope::vulkan::portable {

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

/// How rows are reduced: those of up to `long_row` elements in one pass; longer ones in pieces where rows alone do not fill a device.
struct row_pieces {
  static constexpr std::int64_t piece = 16384, long_row = 32768;

  /// `terms`: what the results are divided by, if it is not 0.
  static void pass(const launch& l, recording& r, const shader& code, const merged_reduction::row_shape& s, const view& x, const view& y,
                   std::int64_t pieces, float terms) {
    const std::int64_t each = pieces == 1 ? round_up(s.n, 4) : piece;
    const bool wide = s.n % 4 == 0 && s.pitch % 4 == 0;
    const auto t = team::streaming(*l.device, blocks_of_row(std::min(s.n, each), wide), 8);
    const struct {
      std::uint64_t x, y;
      std::uint32_t results, n, pitch, pieces, each;
      float terms;
    } push{x.at, y.at, word(s.rows * pieces), word(s.n), word(s.pitch), word(pieces), word(each), terms};
    r.add(code, of_rows(l, t, wide).add(x.type).add(y.type).add(terms != 0), push, t.take(s.rows * pieces), {x}, {y}).subgroup =
        l.device->subgroup;
  }
};
/// y = x reduced along its rows by `code`, which is row_sum or row_prod; the mean of the rows if `mean`. Scratch has 4 bytes for each piece.
inline void record_rows(const launch& l, recording& r, const shader& code, const merged_reduction::row_shape& s, const view& x,
                        const view& y, bool mean = false) {
  const float terms = mean ? float(s.n) : 0;
  const std::int64_t pieces = s.n <= row_pieces::long_row ? 1 : divide_up(s.n, row_pieces::piece);
  if (pieces == 1) return row_pieces::pass(l, r, code, s, x, y, 1, terms);
  view partial;
  partial.at = l.scratch;
  partial.bytes = 4 * s.rows * pieces;
  row_pieces::pass(l, r, code, s, x, partial, pieces, 0);
  row_pieces::pass(l, r, code, {s.rows, pieces, pieces}, partial, y, 1, terms);
}

}  // namespace isotope::vulkan::portable
