#pragma once
/// Attention over cached keys and values by the definition, one head of a query at a time.
#include <limits>

#include <isotope/op/attention_cached.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::attention_cached, P, kernels::reference> {
  /// One probability per position.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[1][2]; }

  static void run(const launch& l) {
    const auto c = l.constants<op::attention_cached>();
    const view &q = l.in[0], &keys = l.in[1], &values = l.in[2], &sequence = l.in[3], &position = l.in[4], &y = l.out[0];
    const op::cache_sizes size(keys.dims);
    double* p = static_cast<double*>(l.scratch);  // (T)
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t n = 0; n < q.dims[0]; ++n)
      for (std::int64_t h = 0; h < c.heads; ++h) {
        const std::int64_t slot = sequence.as<const std::int32_t>()[n * sequence.strides[0]],
                           own = position.as<const std::int32_t>()[n * position.strides[0]], g = h / (c.heads / size.G);
        const bool idle = !size.has(slot, own);
        const std::int64_t first = idle ? 0 : c.first(own), end = idle ? 0 : own + 1;
        const auto in_cache = [&](const view& cache, std::int64_t t, std::int64_t d) {
          return reference::load(cache, slot * cache.strides[0] + g * cache.strides[1] + t * cache.strides[2] + d * cache.strides[3]);
        };
        double top = -infinity, total = 0;
        for (std::int64_t t = first; t < end; ++t) {
          double dot = 0;
          for (std::int64_t d = 0; d < size.D; ++d)
            dot += reference::load(q, n * q.strides[0] + (h * size.D + d) * q.strides[1]) * in_cache(keys, t, d);
          p[t] = c.scale * dot;
          if (p[t] > top || std::isnan(p[t])) top = p[t];  // keeps NaN
        }
        const bool blind = top == -infinity;
        for (std::int64_t t = first; t < end; ++t) total += p[t] = blind ? 0.0 : std::exp(p[t] - top);
        for (std::int64_t d = 0; d < size.D; ++d) {
          double sum = 0;
          for (std::int64_t t = first; t < end; ++t) sum += p[t] * in_cache(values, t, d);
          reference::store(y, n * y.strides[0] + (h * size.D + d) * y.strides[1], blind ? 0.0 : sum / total);
        }
      }
  }
};

}  // namespace isotope::cpu
