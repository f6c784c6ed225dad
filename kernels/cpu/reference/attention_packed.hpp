#pragma once
/// Attention of packed sequences by the definition, one head of a query at a time.
#include <limits>

#include <isotope/op/attention_packed.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::attention_packed, P, kernels::reference> {
  /// One probability per row.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[0][0]; }

  static void run(const launch& l) {
    const auto c = l.constants<op::attention_packed>();
    const view &q = l.in[0], &k = l.in[1], &v = l.in[2], &y = l.out[0];
    const std::int64_t N = q.dims[0], C = q.dims[1], D = C / c.heads, sequences = l.in[3].dims[0] - 1;
    const auto* starts = l.in[3].as<const std::int32_t>();
    const auto at = [](const view& x, std::int64_t row, std::int64_t col) { return row * x.strides[0] + col * x.strides[1]; };
    double* p = static_cast<double*>(l.scratch);  // (N)
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t col = 0; col < C; ++col) reference::store(y, at(y, n, col), 0);
    for (std::int64_t b = 0; b < sequences; ++b) {
      const auto rows = op::packed_rows::of(starts, b, N);
      for (std::int64_t n = rows.first; n < rows.end; ++n)
        for (std::int64_t h = 0; h < c.heads; ++h) {
          const std::int64_t end = c.causal ? n + 1 : rows.end;
          double top = -infinity, total = 0;
          for (std::int64_t t = rows.first; t < end; ++t) {
            double dot = 0;
            for (std::int64_t d = h * D; d < (h + 1) * D; ++d) dot += reference::load(q, at(q, n, d)) * reference::load(k, at(k, t, d));
            p[t] = c.scale * dot;
            if (p[t] > top || std::isnan(p[t])) top = p[t];  // keeps NaN
          }
          if (top == -infinity) continue;
          for (std::int64_t t = rows.first; t < end; ++t) total += p[t] = std::exp(p[t] - top);
          for (std::int64_t d = h * D; d < (h + 1) * D; ++d) {
            double sum = 0;
            for (std::int64_t t = rows.first; t < end; ++t) sum += p[t] * reference::load(v, at(v, t, d));
            reference::store(y, at(y, n, d), sum / total);
          }
        }
    }
  }
};

}  // namespace isotope::cpu
