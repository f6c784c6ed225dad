#pragma once
/// One row of each of several packed sequences, by the definition.
#include <isotope/op/pool.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::pool, P, kernels::reference> {
  static void run(const launch& l) {
    const auto c = l.constants<op::pool>();
    const view &x = l.in[0], &y = l.out[0];
    const auto* starts = l.in[1].as<const std::int32_t>();
    for (std::int64_t b = 0; b < y.dims[0]; ++b) {
      const auto rows = op::packed_rows::of(starts, b, x.dims[0]);
      const std::int64_t end = c.how == pooling_kind::first && rows.count() > 0 ? rows.first + 1 : rows.end;
      const auto pooled = [&](std::int64_t col) {
        double sum = 0;
        for (std::int64_t n = rows.first; n < end; ++n) sum += reference::load(x, n * x.strides[0] + col * x.strides[1]);
        return end > rows.first ? sum / double(end - rows.first) : 0.0;
      };
      double squares = 0;
      for (std::int64_t col = 0; col < y.dims[1] && c.normalise; ++col) squares += pooled(col) * pooled(col);
      const double norm = std::sqrt(squares), by = c.normalise ? (norm < op::pool::least_norm ? op::pool::least_norm : norm) : 1.0;
      for (std::int64_t col = 0; col < y.dims[1]; ++col) reference::store(y, b * y.strides[0] + col * y.strides[1], pooled(col) / by);
    }
  }
};

}  // namespace isotope::cpu
