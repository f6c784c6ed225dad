#pragma once
/// Sums columns: leading axes, and the partial sums of other kernels.
#include <isotope/shaders/column_sum.hpp>

#include "rows.hpp"

namespace isotope::vulkan::portable {

/// Rows of a matrix x (batch, rows, cols), `pitch` elements apart, which are summed into y (batch, cols).
struct columns {
  std::int64_t rows = 0, cols = 0, pitch = 0, batch = 1, x_batch = 0, y_batch = 0;

  /// Up to 1024 rows take one pass; more are first summed in at most 512 chunks of a multiple of 128 rows.
  static constexpr std::int64_t one_pass = 1024, most_chunks = 512, least_rows = 128;
  /// One dispatch covers this much on every device.
  static constexpr std::int64_t most_cols = 65535 * 32, most_batch = 65535;
  static constexpr std::int64_t rows_of_chunk(std::int64_t rows) { return round_up(divide_up(rows, most_chunks), least_rows); }
  static constexpr std::int64_t chunks(std::int64_t rows) { return rows <= one_pass ? 1 : divide_up(rows, rows_of_chunk(rows)); }
  /// Returns the elements of f32 scratch.
  static constexpr std::int64_t partial(std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    return rows <= one_pass ? 0 : batch * std::min(most_chunks, divide_up(rows, least_rows)) * cols;
  }
};

struct column_sum_options {
  bool add = false, mean = false;  // add: y += sum; mean: sum / rows
};

namespace column_sum_detail {
inline void pass(const launch& l, recording& r, const columns& c, const view& x, const view& y, std::int64_t each, std::int64_t across,
                 bool add, float terms) {
  const struct {
    std::uint64_t x, y;
    std::uint32_t rows, cols, pitch, each, x_batch, y_batch;
    float terms;
  } push{x.at, y.at, word(c.rows), word(c.cols), word(c.pitch), word(each), word(c.x_batch), word(c.y_batch), terms};
  const bool wide = c.cols % 4 == 0 && c.pitch % 4 == 0 && c.x_batch % 4 == 0 && c.y_batch % 4 == 0 && all_aligned(x, y);
  const std::int64_t blocks = wide ? c.cols / 4 : c.cols;
  if (blocks > 8192) across = 32;  // columns alone fill a device
  while (across > 1 && across / 2 >= blocks) across /= 2;
  std::int64_t workgroup = 32;  // a power of two, for the tree
  while (workgroup < 256 && 2 * workgroup <= largest_workgroup(*l.device)) workgroup *= 2;
  const groups count{word(divide_up(blocks, across)), word(std::max<std::int64_t>(1, divide_up(c.rows, each))), word(c.batch)};
  std::vector<range> reads{x};
  if (add) reads.push_back(y);
  r.add(shaders::column_sum,
        constants{word(workgroup), l.device->subgroup}.add(across).add(wide).add(x.type).add(y.type).add(add).add(terms != 0), push, count,
        std::move(reads), {y});
}
}  // namespace column_sum_detail

/// y = sums of the columns of x; `scratch` holds columns::partial elements.
inline void record_column_sum(const launch& l, recording& r, const columns& c, const view& x, const view& y, std::uint64_t scratch,
                              column_sum_options o = {}) {
  if (c.cols == 0 || c.batch == 0) return;
  const float terms = o.mean ? float(c.rows) : 0;
  if (c.rows <= columns::one_pass) return column_sum_detail::pass(l, r, c, x, y, std::max<std::int64_t>(1, c.rows), 8, o.add, terms);
  const std::int64_t chunks = columns::chunks(c.rows);
  view partial;
  partial.at = scratch;
  partial.bytes = 4 * c.batch * chunks * c.cols;
  columns first = c, second = c;
  first.y_batch = second.x_batch = chunks * c.cols;
  second.rows = chunks;
  second.pitch = c.cols;
  column_sum_detail::pass(l, r, first, x, partial, columns::rows_of_chunk(c.rows), 32, false, 0);
  column_sum_detail::pass(l, r, second, partial, y, chunks, 8, o.add, terms);
}

}  // namespace isotope::vulkan::portable
