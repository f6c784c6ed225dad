#pragma once
/// The k largest elements of rows: k times, it takes the first remaining element that no other beats. NaN beats all.
#include <isotope/op/top_k.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::top_k, P, kernels::reference> {
  static void run(const launch& l) {
    const view &x = l.in[0], &values = l.out[0], &places = l.out[1];
    const std::int64_t n = x.dims[-1], k = l.constants<op::top_k>().k, rows = x.dims.count() / n;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < k; ++i) {
        auto* const mine = places.as<std::int32_t>() + r * k;
        std::int64_t best = -1;
        for (std::int64_t j = 0; j < n; ++j) {
          bool taken = false;
          for (std::int64_t t = 0; t < i; ++t) taken = taken || mine[t] == j;
          if (taken) continue;
          const double v = reference::load(x, r * n + j), top = best < 0 ? 0 : reference::load(x, r * n + best);
          if (best < 0 || (!std::isnan(top) && (std::isnan(v) || v > top))) best = j;
        }
        mine[i] = std::int32_t(best);
        reference::store(values, r * k + i, reference::load(x, r * n + best));
      }
  }
};

}  // namespace isotope::cpu
