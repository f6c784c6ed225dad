#pragma once
/// Running sums along one axis, in f64. An element is read before its place is written, so in place is safe.
#include <isotope/op/cumsum.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::cumsum, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    const std::int64_t mask = std::int64_t(1) << l.constants<op::cumsum>().axis;
    const reference::axes_apart x(l.in[0], mask), y(l.out[0], mask);
    const std::int64_t n = x.inner.dims[0];
    for (reference::index o(x.outer.dims); o.valid(); o.next()) {
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = l.constants<op::cumsum>().reverse ? n - 1 - k : k;
        sum += reference::load(x.inner, o.in(x.outer.strides) + i * x.inner.strides[0]);
        reference::store(y.inner, o.in(y.outer.strides) + i * y.inner.strides[0], sum);
      }
    }
  }
};

}  // namespace isotope::cpu
