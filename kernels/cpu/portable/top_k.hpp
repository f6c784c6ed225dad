#pragma once
/// The k largest elements of rows. Bound by bytes where k is small: most elements are compared only with the last of the list.
#include <cmath>

#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/top_k.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct top_k {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t n = s.in[0].cols();
    return 4 * (n + s.constants<op::top_k>().k) * row_chunks::limit(n == 0 ? 0 : s.in[0].count() / n);
  }
  static void run(const launch& l) {
    const std::int64_t n = l.in[0].dims.cols(), k = l.constants<op::top_k>().k, rows = l.in[0].dims.count() / n;
    for_rows(l, rows, double(rows * n) * 0.6, [&](std::int64_t r, int slice) {
      float* const own = static_cast<float*>(l.scratch) + slice * (n + k);
      const float* const x = read_row(l.in[0], r, n, own);
      auto* const places = l.out[1].as<std::int32_t>() + r * k;
      row(x, n, k, places);
      float* const y = target_row(l.out[0], r, k, own + n);
      for (std::int64_t i = 0; i < k; ++i) y[i] = x[places[i]];
      finish_row(l.out[0], r, k, y);
    });
  }

 private:
  static bool above(float a, float b) { return !std::isnan(b) && (std::isnan(a) || a > b); }
  /// Inserts each element into a descending list if it is above the last one.
  static void row(const float* x, std::int64_t n, std::int64_t k, std::int32_t* places) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t at = smaller(i, k);
      if (at == k && !above(x[i], x[places[k - 1]])) continue;
      for (; at > 0 && above(x[i], x[places[at - 1]]); --at)
        if (at < k) places[at] = places[at - 1];
      places[at] = std::int32_t(i);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::top_k, P, kernels::portable> : portable::top_k {};
}  // namespace isotope::cpu
