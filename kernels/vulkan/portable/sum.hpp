#pragma once
/// Sums and means, bound by bytes. Each row takes a subgroup or a workgroup; columns take column_sum. The reference kernel handles other sets of
/// axes.
#include <isotope/kernels/vulkan/reference/sum.hpp>
#include <isotope/op/sum.hpp>
#include <isotope/shaders/row_sum.hpp>

#include <isotope/kernels/vulkan/rows/column_sum.hpp>
#include <isotope/kernels/vulkan/rows/flat.hpp>
#include <isotope/kernels/vulkan/rows/reduction.hpp>

namespace isotope::vulkan {
namespace portable {

struct sums {
  /// Rows of up to `long_row` elements take one pass; longer ones are divided into pieces where rows alone do not fill a device.
  static constexpr std::int64_t piece = 16384, long_row = 32768;
  static constexpr std::int64_t scratch(std::int64_t count, std::int64_t results) {
    // Pieces of rows, or chunks of columns: 4 bytes each, chunks of at least 128 rows.
    return 4 * std::max(divide_up(count, piece) + results, divide_up(count, columns::least_rows) + results);
  }

  template <class Op, class P> static void record(const launch& l, recording& r, bool mean) {
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const merged_reduction m(x, l.constants<op::reduction>().axes);
    const auto rows = m.rows();
    const auto cols = m.columns();
    const bool any = x.dims.count() > 0 && loads_as_f32(x.type);
    if (any && m.copies() && all_aligned(x, y)) return record_flat(l, r, x, y, false);
    if (any && aligned(x) && rows) return by_rows(l, r, *rows, x, y, mean);
    if (any && cols && cols->batch <= columns::most_batch && cols->cols <= columns::most_cols) {
      const columns c{.rows = cols->rows,
                      .cols = cols->cols,
                      .pitch = cols->pitch,
                      .batch = cols->batch,
                      .x_batch = cols->batch_pitch,
                      .y_batch = cols->cols};
      return record_column_sum(l, r, c, x, y, l.scratch, {.mean = mean});
    }
    fall_through<Op, P>(l, r, x.dims.count() == 0 ? "sum of nothing" : "sum over axes that are neither rows nor columns");
  }

 private:
  static void pass(const launch& l, recording& r, const merged_reduction::row_shape& s, const view& x, const view& y, std::int64_t pieces,
                   float terms) {
    const std::int64_t each = pieces == 1 ? round_up(s.n, 4) : piece;
    const bool wide = s.n % 4 == 0 && s.pitch % 4 == 0;
    const auto t = team::streaming(*l.device, blocks_of_row(std::min(s.n, each), wide), 8);
    const struct {
      std::uint64_t x, y;
      std::uint32_t results, n, pitch, pieces, each;
      float terms;
    } push{x.at, y.at, word(s.rows * pieces), word(s.n), word(s.pitch), word(pieces), word(each), terms};
    r.add(shaders::row_sum, of_rows(l, t, wide).add(x.type).add(y.type).add(terms != 0), push, t.take(s.rows * pieces), {x}, {y}).subgroup =
        l.device->subgroup;
  }
  static void by_rows(const launch& l, recording& r, const merged_reduction::row_shape& s, const view& x, const view& y, bool mean) {
    const float terms = mean ? float(s.n) : 0;
    const std::int64_t pieces = s.n <= long_row ? 1 : divide_up(s.n, piece);
    if (pieces == 1) return pass(l, r, s, x, y, 1, terms);
    view partial;
    partial.at = l.scratch;
    partial.bytes = 4 * s.rows * pieces;
    pass(l, r, s, x, partial, pieces, 0);
    pass(l, r, {s.rows, pieces, pieces}, partial, y, 1, terms);
  }
};

}  // namespace portable

template <class P> struct kernel<op::sum, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::sums::scratch(s.in[0].count(), s.out[0].count()), portable::scratch_below<op::sum, P>(s));
  }
  static void record(const launch& l, recording& r) { portable::sums::record<op::sum, P>(l, r, false); }
};

template <class P> struct kernel<op::mean, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::sums::scratch(s.in[0].count(), s.out[0].count()), portable::scratch_below<op::mean, P>(s));
  }
  static void record(const launch& l, recording& r) { portable::sums::record<op::mean, P>(l, r, true); }
};

}  // namespace isotope::vulkan
