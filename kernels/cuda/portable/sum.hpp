#pragma once
/// Sums and means, bound by bytes. Each row takes a warp or a block; columns take column_sum. The reference kernel handles other sets of
/// axes.
#include <isotope/kernels/cuda/reference/sum.hpp>
#include <isotope/op/sum.hpp>

#include <isotope/kernels/cuda/rows/column_sum.hpp>
#include <isotope/kernels/cuda/rows/flat.hpp>
#include <isotope/kernels/cuda/rows/reduction.hpp>

namespace isotope::cuda {
namespace portable {

struct sums {
  static constexpr std::int64_t scratch(std::int64_t count, std::int64_t results) {
    // Pieces of rows, or chunks of columns: 4 bytes each, chunks of at least 128 rows.
    return 4 * std::max(divide_up(count, row_pieces::piece) + results, divide_up(count, columns::least_rows) + results);
  }

  template <class Op, class P> static void record(const launch& l, recording& r, bool mean) {
    constexpr by_format functions{"row_sum_f32", "row_sum_bf16", "row_sum_f16"};
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const merged_reduction m(x, l.constants<op::reduction>().axes);
    const auto rows = m.rows();
    const auto cols = m.columns();
    const bool any = x.dims.count() > 0 && all_load_as_f32(x, y);
    if (any && m.copies()) return record_flat(r, x, y, false);
    if (any && rows) return record_rows(l, r, functions, *rows, x, y, mean);
    if (any && cols && cols->batch <= columns::most_batch) {
      const columns c{cols->rows, cols->cols, cols->pitch, cols->batch, cols->batch_pitch, cols->cols};
      return record_column_sum(r, c, x, y, l.scratch, mean);
    }
    fall_through<Op, P>(l, r, x.dims.count() == 0 ? "sum of nothing" : "sum over axes that are neither rows nor columns");
  }
};

}  // namespace portable

template <GpuPrecision P> struct kernel<op::sum, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::sums::scratch(s.in[0].count(), s.out[0].count()), portable::scratch_below<op::sum, P>(s));
  }
  static void record(const launch& l, recording& r) { portable::sums::record<op::sum, P>(l, r, false); }
};

template <GpuPrecision P> struct kernel<op::mean, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::sums::scratch(s.in[0].count(), s.out[0].count()), portable::scratch_below<op::mean, P>(s));
  }
  static void record(const launch& l, recording& r) { portable::sums::record<op::mean, P>(l, r, true); }
};

}  // namespace isotope::cuda
