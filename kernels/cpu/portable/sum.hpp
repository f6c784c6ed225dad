#pragma once
/// Bound by bytes. Three shapes have their own loops: one run (the last axes, or all), sums over rows (the leading axes, as for a bias gradient), and
/// anything else, gathered block by block. Long sums are divided into chunks by shape alone and added in order.
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/sum.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// The axes of x with the kept ones first: each result is a range of `terms` elements of that flat index.
struct reduced_axes {
  view permuted;
  std::int64_t results = 1, terms = 1;
  reduced_axes(const view& x, std::int64_t mask) : permuted{x.data, {}, {}, x.type} {
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < x.dims.rank; ++i) {
        if (((mask >> i) & 1) != pass) continue;
        permuted.strides[std::size_t(permuted.dims.rank)] = x.strides[std::size_t(i)];
        permuted.dims.push(x.dims[i]);
        (pass == 0 ? results : terms) *= x.dims[i];
      }
  }
};

/// Adds rows one after another.
struct plain_row_sums {
  static constexpr std::int64_t columns = 512;

  /// sum[c] = x[from, c0 + c] + ... + x[to - 1, c0 + c] in this order, c < n <= columns; rows lie `pitch` apart.
  static void add(const view& x, std::int64_t pitch, std::int64_t from, std::int64_t to, std::int64_t c0, std::int64_t n, float* sum) {
    std::memset(sum, 0, std::size_t(n) * 4);
    alignas(64) float buffer[columns];
    for (std::int64_t k = from; k < to; ++k) {
      const float* row = x.as<const float>() + k * pitch + c0;
      if (x.type != dtype::f32) {
        widen_run(x.data, x.type, k * pitch + c0, 1, buffer, n);
        row = buffer;
      }
      ISOTOPE_IVDEP
      for (std::int64_t c = 0; c < n; ++c) sum[c] += row[c];
    }
  }
};

template <class Rows> class reduction_by {
 public:
  static constexpr std::int64_t block = 1024, chunk = 1 << 14, columns = Rows::columns;

  static constexpr std::int64_t scratch(const step_shapes& s) {
    return 4 * larger_of(divide_up(s.in[0].count(), chunk), row_chunks::most * s.out[0].count());
  }
  /// y = finish(sum) over the axes of the reduction.
  template <class Finish> static void run(const launch& l, const Finish& finish) {
    const reduced_axes r(l.in[0], l.constants<op::reduction>().axes);
    if (r.results == 0) return;
    const merged_axes axes(r.permuted.dims, {&r.permuted, 1});
    if (r.terms > 0 && sums_rows(axes, r)) rows(l, axes, r, finish);
    else if (r.results < 8) few(l, axes, r, finish);
    else many(l, axes, r, finish);
  }

 private:
  /// Whether results are adjacent and terms one stride apart.
  static bool sums_rows(const merged_axes& a, const reduced_axes& r) {
    return a.rank == 2 && a.dims[0] == r.results && a.strides[0][0] == 1 && r.results >= 8;
  }
  /// Returns the sum of the elements [first, first + n) of the flat index, n <= block.
  static float block_sum(const merged_axes& axes, const view& x, std::int64_t first, std::int64_t n) {
    alignas(64) float buffer[block];
    const float* from = buffer;
    axes.runs(0, first, n, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
      if (length == n && stride == 1 && x.type == dtype::f32) from = x.as<const float>() + offset;
      else widen_run(x.data, x.type, offset, stride, buffer + at, length);
    });
    return math::sum(from, n);
  }
  static float range_sum(const merged_axes& axes, const view& x, std::int64_t first, std::int64_t n) {
    float total = 0;
    for (std::int64_t i = 0; i < n; i += block) total += block_sum(axes, x, first + i, smaller(block, n - i));
    return total;
  }
  template <class Finish> static void put(const launch& l, std::int64_t i, float x, const Finish& finish) {
    const float y = finish(x);
    narrow_run(&y, l.out[0].data, l.out[0].type, i, 1);
  }

  template <class Finish> static void many(const launch& l, const merged_axes& axes, const reduced_axes& r, const Finish& finish) {
    const std::int64_t each = larger_of(1, 4096 / larger_of(1, r.terms));
    for_tasks(l, divide_up(r.results, each), double(r.results) * (10 + double(r.terms) * 0.3), [&](std::int64_t t, int) {
      for (std::int64_t i = t * each; i < smaller(r.results, (t + 1) * each); ++i)
        put(l, i, range_sum(axes, r.permuted, i * r.terms, r.terms), finish);
    });
  }
  template <class Finish> static void few(const launch& l, const merged_axes& axes, const reduced_axes& r, const Finish& finish) {
    auto* partial = static_cast<float*>(l.scratch);
    const std::int64_t chunks = divide_up(r.terms, chunk);
    for (std::int64_t i = 0; i < r.results; ++i) {
      for_tasks(l, chunks, double(r.terms) * 0.2, [&](std::int64_t t, int) {
        partial[t] = range_sum(axes, r.permuted, i * r.terms + t * chunk, smaller(chunk, r.terms - t * chunk));
      });
      put(l, i, math::sum(partial, chunks), finish);
    }
  }
  template <class Finish> static void rows(const launch& l, const merged_axes& axes, const reduced_axes& r, const Finish& finish) {
    const view& x = r.permuted;
    auto* partial = static_cast<float*>(l.scratch);
    const row_chunks chunks(r.terms);
    const std::int64_t across = divide_up(r.results, columns), pitch = axes.strides[0][1];
    for_tasks(l, chunks.count * across, double(r.terms * r.results) * 0.15, [&](std::int64_t t, int) {
      const std::int64_t c0 = t / chunks.count * columns, k = t % chunks.count;
      Rows::add(x, pitch, chunks.begin(k), chunks.end(k), c0, smaller(columns, r.results - c0), partial + k * r.results + c0);
    });
    for_tasks(l, across, double(chunks.count * r.results) * 0.15, [&](std::int64_t t, int) {
      alignas(64) float sum[columns];
      const std::int64_t c0 = t * columns, n = smaller(columns, r.results - c0);
      sum_partials(partial + c0, chunks.count, r.results, sum, n);
      for (std::int64_t c = 0; c < n; ++c) sum[c] = finish(sum[c]);
      narrow_run(sum, l.out[0].data, l.out[0].type, c0, n);
    });
  }
};

template <class Rows> struct sum_by {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reduction_by<Rows>::scratch(s); }
  static void run(const launch& l) {
    reduction_by<Rows>::run(l, [](float x) { return x; });
  }
};
template <class Rows> struct mean_by {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reduction_by<Rows>::scratch(s); }
  static void run(const launch& l) {
    const auto terms = float(reduced_axes(l.in[0], l.constants<op::reduction>().axes).terms);
    reduction_by<Rows>::run(l, [terms](float x) { return x / terms; });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::sum, P, kernels::portable> : portable::sum_by<portable::plain_row_sums> {};
template <VectorProgram P> struct kernel<op::mean, P, kernels::portable> : portable::mean_by<portable::plain_row_sums> {};
}  // namespace isotope::cpu
