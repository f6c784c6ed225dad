#pragma once
/// Softmax and its logarithm along one axis. A row is read whole before it is written element by element, so in place is safe.
#include <limits>

#include <isotope/op/softmax.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {
/// For each row along the axis: a summary of `get` and n, then y[i] = f(get, i, summary). `get(k, i)` reads operand k.
template <class Summary, class F> void along_axis(const launch& l, Summary summary, F f) {
  const std::int64_t mask = std::int64_t(1) << l.constants<op::softmax_shape>().axis;
  const axes_apart x(l.in[0], mask), other(l.in[l.in.size() - 1], mask), y(l.out[0], mask);
  const std::int64_t n = x.inner.dims[0];
  for (index o(x.outer.dims); o.valid(); o.next()) {
    const auto get = [&](int k, std::int64_t i) {
      const axes_apart& v = k == 0 ? x : other;
      return load(v.inner, o.in(v.outer.strides) + i * v.inner.strides[0]);
    };
    const auto s = summary(get, n);
    for (std::int64_t i = 0; i < n; ++i) store(y.inner, o.in(y.outer.strides) + i * y.inner.strides[0], f(get, i, s));
  }
}
/// The largest x, and the sum of exp(x - top). A row of only -infinity gives NaN.
struct denominator {
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  template <class Get> denominator(const Get& get, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      if (get(0, i) > top) top = get(0, i);
    for (std::int64_t i = 0; i < n; ++i) total += std::exp(get(0, i) - top);
  }
};
}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::softmax, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    reference::along_axis(
        l, [](const auto& get, std::int64_t n) { return reference::denominator(get, n); },
        [](const auto& get, std::int64_t i, const auto& s) { return std::exp(get(0, i) - s.top) / s.total; });
  }
};
template <class P> struct kernel<op::log_softmax, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void run(const launch& l) {
    reference::along_axis(
        l, [](const auto& get, std::int64_t n) { return reference::denominator(get, n); },
        [](const auto& get, std::int64_t i, const auto& s) { return get(0, i) - s.top - std::log(s.total); });
  }
};
template <class P> struct kernel<op::softmax_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b11;
  static void run(const launch& l) {
    reference::along_axis(
        l,
        [](const auto& get, std::int64_t n) {
          double dot = 0;
          for (std::int64_t i = 0; i < n; ++i) dot += get(0, i) * get(1, i);
          return dot;
        },
        [](const auto& get, std::int64_t i, double dot) { return get(0, i) * (get(1, i) - dot); });
  }
};
template <class P> struct kernel<op::log_softmax_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b11;
  static void run(const launch& l) {
    reference::along_axis(
        l,
        [](const auto& get, std::int64_t n) {
          double total = 0;
          for (std::int64_t i = 0; i < n; ++i) total += get(1, i);
          return total;
        },
        [](const auto& get, std::int64_t i, double total) { return get(1, i) - std::exp(get(0, i)) * total; });
  }
};

}  // namespace isotope::cpu
