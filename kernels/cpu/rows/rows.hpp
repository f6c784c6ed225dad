#pragma once
/// Helpers for kernels that work row by row: they convert rows to f32, divide rows into chunks and sum columns in a fixed order.
#include <algorithm>
#include <limits>

#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Returns row r of a dense tensor as f32: in place if possible, else converted into the buffer.
inline const float* read_row(const view& x, std::int64_t r, std::int64_t cols, float* buffer) {
  if (x.type == dtype::f32) return x.as<const float>() + r * cols;
  widen_run(x.data, x.type, r * cols, 1, buffer, cols);
  return buffer;
}
/// Returns where to compute row r of a dense tensor: in place for f32, else in the buffer, from which finish_row rounds it.
inline float* target_row(const view& y, std::int64_t r, std::int64_t cols, float* buffer) {
  return y.type == dtype::f32 ? y.as<float>() + r * cols : buffer;
}
inline void finish_row(const view& y, std::int64_t r, std::int64_t cols, const float* row) {
  if (y.type != dtype::f32) narrow_run(row, y.data, y.type, r * cols, cols);
}
/// y = addend + y in row r, whose result is already in `row`. Each addition rounds once, as separate steps would. `buffer` has room for a row.
inline void add_to_row(const view& y, const view& addend, std::int64_t r, std::int64_t cols, float* row, float* buffer) {
  const float* a = read_row(addend, r, cols, buffer);
  if (y.type != dtype::f32) widen_run(y.data, y.type, r * cols, 1, row, cols);
  ISOTOPE_IVDEP
  for (std::int64_t c = 0; c < cols; ++c) row[c] = a[c] + row[c];
  finish_row(y, r, cols, row);
}
/// Fills the means and deviations of rows without elements with NaN: they are 0 / 0.
inline void write_undefined(const view& statistics) {
  std::fill_n(statistics.as<float>(), statistics.dims.count(), std::numeric_limits<float>::quiet_NaN());
}
/// Returns one element of a dense tensor as f32.
inline float element(const view& x, std::int64_t at) {
  float r = 0;
  widen_run(x.data, x.type, at, 1, &r, 1);
  return r;
}
inline float scalar(const view& x) { return element(x, 0); }

/// Divides rows into at most 64 chunks of at least 16: the unit of work and of partial sums.
struct row_chunks {
  static constexpr std::int64_t most = 64, least_rows = 16;
  std::int64_t rows, each, count;
  explicit row_chunks(std::int64_t n) : rows(n), each(larger_of(least_rows, divide_up(n, most))), count(divide_up(n, each)) {}
  /// Returns an upper bound of `count` for any number of rows up to n.
  static constexpr std::int64_t limit(std::int64_t n) { return smaller(most, divide_up(n, least_rows)); }
  std::int64_t begin(std::int64_t chunk) const { return chunk * each; }
  std::int64_t end(std::int64_t chunk) const { return smaller(rows, (chunk + 1) * each); }
};

/// Calls row(r, slice) for each of the rows, in tasks of a chunk. nsec: the cost of all.
template <class F> void for_rows(const launch& l, std::int64_t rows, double nsec, const F& row) {
  const row_chunks chunks(rows);
  for_tasks(l, chunks.count, nsec, [&](std::int64_t t, int slice) {
    for (std::int64_t r = chunks.begin(t); r < chunks.end(t); ++r) row(r, slice);
  });
}

/// y[c] = partial[0 pitch + c] + partial[1 pitch + c] + ..., in this order.
inline void sum_partials(const float* partial, std::int64_t count, std::int64_t pitch, float* y, std::int64_t cols) {
  constexpr std::int64_t some = 256;
  for (std::int64_t c0 = 0; c0 < cols; c0 += some) {
    const std::int64_t n = smaller(some, cols - c0);
    float sum[some] = {};
    for (std::int64_t k = 0; k < count; ++k) {
      const float* x = partial + k * pitch + c0;
      ISOTOPE_IVDEP
      for (std::int64_t c = 0; c < n; ++c) sum[c] += x[c];
    }
    std::memcpy(y + c0, sum, std::size_t(n) * 4);
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
