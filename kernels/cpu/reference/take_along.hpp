#pragma once
/// Takes elements of rows by index, and adds to them in ascending order.
#include <limits>
#include <vector>

#include <isotope/op/take_along.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::take_along, P, kernels::reference> {
  static void run(const launch& l) {
    const view &x = l.in[0], &index = l.in[1], &y = l.out[0];
    const std::int64_t N = x.dims[-1], K = index.dims[-1];
    const double outside = l.constants<op::take_along>().zeros ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t i = 0; i < index.dims.count(); ++i) {
      const std::int64_t from = index.as<const std::int32_t>()[i];
      reference::store(y, i, from >= 0 && from < N ? reference::load(x, i / K * N + from) : outside);
    }
  }
};

template <class P> struct kernel<op::scatter_add, P, kernels::reference> {
  static void run(const launch& l) {
    using accumulator = typename P::accum;
    const view &x = l.in[0], &updates = l.in[1], &index = l.in[2], &y = l.out[0];
    const std::int64_t N = x.dims[-1], K = index.dims[-1], rows = N == 0 ? 0 : x.dims.count() / N;
    std::vector<accumulator> row(static_cast<std::size_t>(N));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < N; ++n) row[std::size_t(n)] = accumulator(reference::load(x, r * N + n));
      for (std::int64_t i = r * K; i < (r + 1) * K; ++i) {
        const std::int64_t to = index.as<const std::int32_t>()[i];
        if (to >= 0 && to < N) row[std::size_t(to)] = accumulator(row[std::size_t(to)] + accumulator(reference::load(updates, i)));
      }
      for (std::int64_t n = 0; n < N; ++n) reference::store(y, r * N + n, double(row[std::size_t(n)]));
    }
  }
};

}  // namespace isotope::cpu
