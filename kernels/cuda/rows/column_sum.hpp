#pragma once
/// Sums columns in one launch: leading axes, and the partial sums of other kernels.
#include <isotope/kernels/cuda/portable/column_sum.h>
#include <isotope/fatbins/column_sum.hpp>

#include "rows.hpp"

namespace isotope::cuda::portable {

/// How rows and columns are divided. A block takes a strip of `across` vectors of columns and a chunk of `each` rows. It depends on the
/// shape alone, so that sums have the same bits on every device: `blocks` is what a large device runs at a time.
struct column_division {
  static constexpr std::int64_t least_rows = 128, blocks = 264, least_blocks = 64, rows_at_once = 8, most_rows_of_one_pass = 4096;
  std::int64_t vectors = 0, across = 1, chunks = 1, each = 1;

  std::int64_t strips() const { return divide_up(vectors, across); }

  static column_division of(std::int64_t rows, std::int64_t cols, std::int64_t batch, bool wide, std::int64_t run) {
    column_division d;
    d.vectors = wide ? cols / run : cols;
    d.across = wide ? 8 : 32;  // one line of a cache, or at least 64 bytes
    // Few columns, or few blocks, leave more threads for rows; few rows leave more for columns.
    const std::int64_t least = wide ? 2 : 16;
    while (d.across > 1 && d.across / 2 >= d.vectors) d.across /= 2;
    while (d.across < gpu::column_threads && gpu::column_threads / d.across > rows && d.across < d.vectors) d.across *= 2;
    const auto strip_rows = [&](std::int64_t across) { return divide_up(rows, gpu::column_threads / across * rows_at_once); };
    if (rows <= most_rows_of_one_pass) {
      while (d.across > least && d.strips() * batch < least_blocks && strip_rows(d.across) > 1) d.across /= 2;
    } else {
      d.chunks = std::clamp<std::int64_t>(blocks / (d.strips() * batch), 1, divide_up(rows, least_rows));
    }
    d.each = std::max<std::int64_t>(1, divide_up(rows, d.chunks));
    d.chunks = std::max<std::int64_t>(1, divide_up(rows, d.each));
    return d;
  }
};

/// Rows of a matrix x (batch, rows, cols), `pitch` elements apart, which are summed into y (batch, cols).
struct columns {
  std::int64_t rows = 0, cols = 0, pitch = 0, batch = 1, x_batch = 0, y_batch = 0;
  const view* second = nullptr;  // receives the columns from `split` on
  const view* third = nullptr;   // receives the columns from 2 `split` on
  std::int64_t split = 0;

  static constexpr std::int64_t most_batch = 65535;                        // of one launch
  static constexpr std::int64_t least_rows = column_division::least_rows;  // of a chunk
};

/// y = sums of the columns of x, or their means; `scratch` holds an f32 for each column of each chunk, of at least 128 rows, where there
/// are more than 4096 rows.
inline void record_column_sum(recording& r, const columns& c, const view& x, const view& y, std::uint64_t scratch, bool mean = false) {
  constexpr by_format functions{"column_sum_f32", "column_sum_bf16", "column_sum_f16"};
  if (c.cols == 0 || c.batch == 0) return;
  const std::int64_t run = vector_elems(x.type);
  const bool wide = c.cols % run == 0 && c.pitch % run == 0 && c.x_batch % run == 0 && all_aligned(x);
  const column_division d = column_division::of(c.rows, c.cols, c.batch, wide, run);
  gpu::column_sum_operands a{};
  a.x = x.at;
  a.y = y.at;
  a.second = c.second == nullptr ? 0 : c.second->at;
  a.third = c.third == nullptr ? 0 : c.third->at;
  a.rows = c.rows;
  a.cols = c.cols;
  a.pitch = c.pitch;
  a.each = d.each;
  a.x_batch = c.x_batch;
  a.y_batch = c.y_batch;
  a.split = c.split;
  a.across = std::int32_t(d.across);
  a.wide = wide;
  a.y_type = std::int32_t(y.type);
  a.terms = mean ? float(c.rows) : 0;
  grid blocks = per_block(d.strips(), gpu::column_threads);
  blocks.y = std::uint32_t(d.chunks);
  blocks.z = std::uint32_t(c.batch);
  std::vector<range> writes{y};
  if (c.second != nullptr) writes.push_back(*c.second);
  if (c.third != nullptr) writes.push_back(*c.third);
  if (d.chunks > 1) {
    a.partial = scratch;
    writes.push_back({scratch, 4 * c.batch * d.chunks * c.cols});
    // Counters that no other launch uses: equal bytes share memory, so the first number is the launch's own, and not one of a table.
    std::vector<std::uint32_t> counters(std::size_t(1 + d.strips() * c.batch));
    counters[0] = 0xc0000000u + std::uint32_t(r.dispatches.size());
    a.counters = r.keep<std::uint32_t>(counters) + 4;
    writes.push_back({a.counters, 4 * d.strips() * c.batch});
  }
  r.add(fatbins::column_sum, functions.of(x.type), a, blocks, {x}, std::move(writes));
}

}  // namespace isotope::cuda::portable
