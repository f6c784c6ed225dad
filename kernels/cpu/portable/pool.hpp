#pragma once
/// One row of each of several packed sequences, a sequence per task. Bound by reading the rows: four are added at a time, so that sums are loaded and stored
/// once per four. Rows are added one after another in ascending order, whatever their number.
#include <cmath>

#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/pool.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

class pool {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * slice_floats(s.in[0][1]) * smaller(s.out[0][0], max_workers); }
  static void run(const launch& l) {
    const auto c = l.constants<op::pool>();
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t C = y.dims[1];
    const auto* starts = l.in[1].as<const std::int32_t>();
    const auto work = double(x.dims.count() + 8 * y.dims.count()) * 0.2;
    for_uneven_tasks(l, y.dims[0], work, [&](std::int64_t b, int slice) {
      float* const own = static_cast<float*>(l.scratch) + slice * slice_floats(C);
      auto rows = op::packed_rows::of(starts, b, x.dims[0]);
      if (c.how == pooling_kind::first) rows.end = smaller(rows.end, rows.first + 1);
      std::memset(own, 0, std::size_t(C) * 4);
      add_rows(x, rows, own, C);
      if (rows.count() > 1) {
        const float share = 1.0f / float(rows.count());
        for (std::int64_t k = 0; k < C; ++k) own[k] *= share;
      }
      if (c.normalise) normalise(own, C);
      narrow_run(own, y.data, y.type, b * y.strides[0], C);
    });
  }

 private:
  static constexpr std::int64_t few = 4;     // rows that are added at a time
  static constexpr std::int64_t parts = 16;  // partial sums of a norm
  /// The sums, and rows that are not in f32.
  static constexpr std::int64_t slice_floats(std::int64_t C) { return ((1 + few) * C + 15) / 16 * 16; }

  static void add_rows(const view& x, const op::packed_rows& rows, float* sums, std::int64_t C) {
    const auto row = [&](std::int64_t n, std::int64_t k) -> const float* {
      if (x.type == dtype::f32) return x.as<const float>() + n * x.strides[0];
      widen_run(x.data, x.type, n * x.strides[0], 1, sums + (1 + k) * C, C);
      return sums + (1 + k) * C;
    };
    std::int64_t n = rows.first;
    for (; n + few <= rows.end; n += few) {
      const float *const a = row(n, 0), *const b = row(n + 1, 1), *const c = row(n + 2, 2), *const d = row(n + 3, 3);
      ISOTOPE_IVDEP
      for (std::int64_t k = 0; k < C; ++k) sums[k] = (((sums[k] + a[k]) + b[k]) + c[k]) + d[k];
    }
    for (; n < rows.end; ++n) {
      const float* const a = row(n, 0);
      ISOTOPE_IVDEP
      for (std::int64_t k = 0; k < C; ++k) sums[k] += a[k];
    }
  }
  /// Squares are in f64, where those of all f32 numbers have a place.
  static void normalise(float* x, std::int64_t C) {
    double sum[parts] = {};
    for (std::int64_t k = 0; k < C; ++k) sum[k % parts] += double(x[k]) * double(x[k]);
    for (std::int64_t half = parts / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    const double norm = std::sqrt(sum[0]), by = norm < op::pool::least_norm ? op::pool::least_norm : norm;
    for (std::int64_t k = 0; k < C; ++k) x[k] = float(double(x[k]) / by);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::pool, P, kernels::portable> : portable::pool {};
}  // namespace isotope::cpu
