#pragma once
/// Maximum, minimum and argmax: the first element that no later one beats; NaN beats all. For maximum and minimum, -0 is below 0.
#include <isotope/op/extremum.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
/// Returns the ordinal, among the inner indices, of the first element that beats all before it and that none after it beats.
struct winner {
  double value = 0;
  std::int64_t ordinal = 0;
};
template <class Beats> winner best(const axes_apart& x, const index& outer, Beats beats) {
  winner w;
  std::int64_t ordinal = 0;
  for (index i(x.inner.dims); i.valid(); i.next(), ++ordinal) {
    const double v = load(x.inner, outer.in(x.outer.strides) + i.in(x.inner.strides));
    if (ordinal == 0 || (!std::isnan(w.value) && (std::isnan(v) || beats(v, w.value)))) w = {v, ordinal};
  }
  return w;
}
template <class Beats> void extremum(const launch& l, Beats beats) {
  const auto c = l.constants<op::extremum>();
  const axes_apart x(l.in[0], c.axes, c.keep);
  for (index o(x.outer.dims); o.valid(); o.next()) store(l.out[0], o.in(l.out[0].strides), best(x, o, beats).value);
}
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::max, P, kernels::reference> {
  static void run(const launch& l) {
    reference::extremum(l, [](double a, double b) { return a > b || (a == b && std::signbit(a) < std::signbit(b)); });
  }
};
template <class P> struct kernel<op::min, P, kernels::reference> {
  static void run(const launch& l) {
    reference::extremum(l, [](double a, double b) { return a < b || (a == b && std::signbit(a) > std::signbit(b)); });
  }
};
template <class P> struct kernel<op::argmax, P, kernels::reference> {
  static void run(const launch& l) {
    const view& y = l.out[0];
    const reference::axes_apart x(l.in[0], std::int64_t(1) << l.constants<op::argmax>().axis);
    for (reference::index o(x.outer.dims); o.valid(); o.next())
      y.as<std::int32_t>()[o.in(y.strides)] = std::int32_t(reference::best(x, o, [](double a, double b) { return a > b; }).ordinal);
  }
};

}  // namespace isotope::cpu
