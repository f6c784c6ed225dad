#pragma once
/// Sums columns: leading axes, and the partial sums of other kernels.
#include <isotope/kernels/cuda/portable/column_sum.h>
#include <isotope/fatbins/column_sum.hpp>

#include "rows.hpp"

namespace isotope::cuda::portable {

/// Rows of a matrix x (batch, rows, cols), `pitch` elements apart, which are summed into y (batch, cols).
struct columns {
  std::int64_t rows = 0, cols = 0, pitch = 0, batch = 1, x_batch = 0, y_batch = 0;
  const view* second = nullptr;  // receives the columns from `split` on
  std::int64_t split = 0;

  /// Up to 1024 rows take one pass; more are first summed in at most 512 chunks of a multiple of 128 rows.
  static constexpr std::int64_t one_pass = 1024, most_chunks = 512, least_rows = 128;
  static constexpr std::int64_t most_batch = 65535;  // of one launch
  static constexpr std::int64_t rows_of_chunk(std::int64_t rows) { return round_up(divide_up(rows, most_chunks), least_rows); }
  static constexpr std::int64_t chunks(std::int64_t rows) { return rows <= one_pass ? 1 : divide_up(rows, rows_of_chunk(rows)); }
  /// The elements of f32 scratch.
  static constexpr std::int64_t partial(std::int64_t batch, std::int64_t rows, std::int64_t cols) {
    return rows <= one_pass ? 0 : batch * std::min(most_chunks, divide_up(rows, least_rows)) * cols;
  }
};

namespace column_sum_detail {
inline void pass(recording& r, const columns& c, const view& x, const view& y, std::int64_t each, float terms) {
  constexpr by_format functions{"column_sum_f32", "column_sum_bf16", "column_sum_f16"};
  const std::int64_t run = vector_elems(x.type);
  const bool wide = c.cols % run == 0 && c.pitch % run == 0 && c.x_batch % run == 0 && all_aligned(x);
  const std::int64_t vectors = wide ? c.cols / run : c.cols, chunks = std::max<std::int64_t>(1, divide_up(c.rows, each));
  std::int64_t across = wide ? 8 : 32;  // one line of a cache, or at least 64 bytes
  // Few columns, or few blocks, leave more threads for rows; few rows leave more for columns.
  while (across > 1 && across / 2 >= vectors) across /= 2;
  while (across > 2 && divide_up(vectors, across) * chunks * c.batch < 256) across /= 2;
  while (across < gpu::column_threads && gpu::column_threads / across > each && across < vectors) across *= 2;
  gpu::column_sum_operands a{x.at,
                             y.at,
                             c.second == nullptr ? 0 : c.second->at,
                             c.rows,
                             c.cols,
                             c.pitch,
                             each,
                             c.x_batch,
                             c.y_batch,
                             c.split,
                             std::int32_t(across),
                             wide,
                             std::int32_t(y.type),
                             terms};
  grid blocks = per_block(divide_up(vectors, across), gpu::column_threads);
  blocks.y = std::uint32_t(chunks);
  blocks.z = std::uint32_t(c.batch);
  std::vector<range> writes{y};
  if (c.second != nullptr) writes.push_back(*c.second);
  r.add(fatbins::column_sum, functions.of(x.type), a, blocks, {x}, std::move(writes));
}
}  // namespace column_sum_detail

/// y = sums of the columns of x, or their means; `scratch` holds columns::partial elements.
inline void record_column_sum(recording& r, const columns& c, const view& x, const view& y, std::uint64_t scratch, bool mean = false) {
  if (c.cols == 0 || c.batch == 0) return;
  const float terms = mean ? float(c.rows) : 0;
  if (c.rows <= columns::one_pass) return column_sum_detail::pass(r, c, x, y, std::max<std::int64_t>(1, c.rows), terms);
  const std::int64_t chunks = columns::chunks(c.rows);
  view partial;
  partial.at = scratch;
  partial.bytes = 4 * c.batch * chunks * c.cols;
  columns first = c, second = c;
  first.second = nullptr;
  first.y_batch = second.x_batch = chunks * c.cols;
  second.rows = chunks;
  second.pitch = c.cols;
  column_sum_detail::pass(r, first, x, partial, columns::rows_of_chunk(c.rows), 0);
  column_sum_detail::pass(r, second, partial, y, chunks, terms);
}

}  // namespace isotope::cuda::portable
