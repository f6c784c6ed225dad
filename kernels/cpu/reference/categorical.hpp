#pragma once
/// Draws classes in proportion to softmax(logits / temperature) by the running sum.
#include <limits>

#include <isotope/core/philox.hpp>
#include <isotope/op/categorical.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::categorical, P, kernels::reference> {
  static void run(const launch& l) {
    const view &logits = l.in[0], &y = l.out[0];
    const std::int64_t V = logits.dims[-1], step = reference::last_stride(logits);
    std::uint64_t element = 0;
    for (reference::index row(y.dims); row.valid(); row.next(), ++element) {
      const auto from = row.in(logits.strides);
      double top = -std::numeric_limits<double>::infinity(), total = 0, sum = 0;
      for (std::int64_t c = 0; c < V; ++c) {
        const double x = reference::load(logits, from + c * step);
        if (x > top) top = x;
      }
      const double temperature = l.constants<op::categorical>().temperature;
      const auto weight = [&](std::int64_t c) { return std::exp((reference::load(logits, from + c * step) - top) / temperature); };
      for (std::int64_t c = 0; c < V; ++c) total += weight(c);
      const auto words = philox(l.scalars->seed, element / 4, std::uint32_t(l.scalars->counter), l.ordinal);
      const double wanted = (double(words[std::size_t(element % 4)]) + 0.5) * 0x1p-32 * total;
      std::int64_t drawn = 0;
      while (drawn + 1 < V && !((sum += weight(drawn)) > wanted)) ++drawn;
      y.as<std::int32_t>()[row.in(y.strides)] = std::int32_t(drawn);
    }
  }
};

}  // namespace isotope::cpu
