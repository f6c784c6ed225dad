#pragma once
/// Products over axes are bound by bytes; long ones are divided into chunks by shape alone and combined in order. The gradient is bound by the
/// latency of two multiplications per element, for running products from both ends; these are kept in f64, so that each result rounds once.
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/portable/sum.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/prod.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct multiplication {
  template <class T> static constexpr T start = T(1);
  static constexpr std::int64_t chunk_groups = 32;
  template <class V> ISOTOPE_INLINE void operator()(V& a, const V& b) const { a *= b; }
};

struct prod {
  static constexpr std::int64_t block = 1024, chunk = 1 << 14;

  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * (divide_up(s.in[0].count(), chunk) + s.out[0].count()); }
  static void run(const launch& l) {
    const reduced_axes r(l.in[0], l.constants<op::prod>().axes);
    if (r.results == 0) return;
    const merged_axes axes(r.permuted.dims, {&r.permuted, 1});
    const std::int64_t chunks = larger_of(1, divide_up(r.terms, chunk)), each = larger_of(1, 4096 / larger_of(1, r.terms));
    auto* partial = static_cast<float*>(l.scratch);  // (results, chunks)
    for_tasks(l, divide_up(r.results * chunks, each), double(r.results) * (10 + double(r.terms) * 0.3), [&](std::int64_t t, int) {
      for (std::int64_t i = t * each; i < smaller(r.results * chunks, (t + 1) * each); ++i) {
        const std::int64_t from = i % chunks * chunk;
        partial[i] = range_product(axes, r.permuted, i / chunks * r.terms + from, smaller(chunk, r.terms - from));
      }
    });
    for (std::int64_t i = 0; i < r.results; ++i) {
      const float y = product(partial + i * chunks, chunks);
      narrow_run(&y, l.out[0].data, l.out[0].type, i, 1);
    }
  }

 private:
  static float product(const float* x, std::int64_t n) {
    return math::reduce<float>(n, multiplication{}, [](auto& t, const auto& v) { t = v; }, x);
  }
  /// Returns the product of the elements [first, first + n) of the flat index.
  static float range_product(const merged_axes& axes, const view& x, std::int64_t first, std::int64_t n) {
    float total = 1;
    for (std::int64_t i = 0; i < n; i += block) {
      alignas(64) float buffer[block];
      const std::int64_t some = smaller(block, n - i);
      axes.runs(0, first + i, some, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
        widen_run(x.data, x.type, offset, stride, buffer + at, length);
      });
      total *= product(buffer, some);
    }
    return total;
  }
};

struct prod_grad {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[0][1] * row_chunks::limit(s.in[0][0]); }
  static void run(const launch& l) {
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    const std::int64_t rows = x.dims[0], n = x.dims[1];
    if (rows * n == 0) return;
    for_rows(l, rows, double(rows * n) * 2.5, [&](std::int64_t r, int slice) {
      float* own = static_cast<float*>(l.scratch) + slice * 2 * n;
      const float* row = read_row(x, r, n, own);
      float* y = target_row(dx, r, n, own + n);
      double before = 1, after = 1;
      for (std::int64_t i = 0; i < n; ++i) {
        y[i] = float(before);
        before *= double(row[i]);
      }
      const float d = element(dy, r);
      for (std::int64_t i = n - 1; i >= 0; --i) {
        y[i] = float(double(d) * (double(y[i]) * after));
        after *= double(row[i]);
      }
      finish_row(dx, r, n, y);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::prod, P, kernels::portable> : portable::prod {};
template <VectorProgram P> struct kernel<op::prod_grad, P, kernels::portable> : portable::prod_grad {};
}  // namespace isotope::cpu
