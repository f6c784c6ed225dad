#pragma once
/// Sums and means, one result at a time.
#include <isotope/op/sum.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
/// y[outer] = finish(sum over inner of x) for the reductions.
template <class Finish> void reduce(const launch& l, Finish finish) {
  const view& y = l.out[0];
  const auto c = l.constants<op::reduction>();
  const axes_apart x(l.in[0], c.axes, c.keep);
  for (index o(x.outer.dims); o.valid(); o.next()) {
    double total = 0;
    for (index i(x.inner.dims); i.valid(); i.next()) total += load(x.inner, o.in(x.outer.strides) + i.in(x.inner.strides));
    store(y, o.in(y.strides), finish(total, double(x.inner.dims.count())));
  }
}
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::sum, P, kernels::reference> {
  static void run(const launch& l) {
    reference::reduce(l, [](double total, double) { return total; });
  }
};
template <class P> struct kernel<op::mean, P, kernels::reference> {
  static void run(const launch& l) {
    reference::reduce(l, [](double total, double terms) { return total / terms; });
  }
};

}  // namespace isotope::cpu
