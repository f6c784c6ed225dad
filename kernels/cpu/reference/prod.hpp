#pragma once
/// Products in f64, one result at a time; the gradient multiplies the products of the elements before and behind each element.
#include <isotope/op/prod.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::prod, P, kernels::reference> {
  static void run(const launch& l) {
    const auto c = l.constants<op::prod>();
    const reference::axes_apart x(l.in[0], c.axes, c.keep);
    for (reference::index o(x.outer.dims); o.valid(); o.next()) {
      double product = 1;
      for (reference::index i(x.inner.dims); i.valid(); i.next())
        product *= reference::load(x.inner, o.in(x.outer.strides) + i.in(x.inner.strides));
      reference::store(l.out[0], o.in(l.out[0].strides), product);
    }
  }
};
template <class P> struct kernel<op::prod_grad, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[0][1]; }
  static void run(const launch& l) {
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    const std::int64_t n = x.dims[1];
    auto* before = static_cast<double*>(l.scratch);
    for (std::int64_t r = 0; r < x.dims[0]; ++r) {
      double product = 1;
      for (std::int64_t i = 0; i < n; product *= reference::load(x, r * n + i++)) before[i] = product;
      product = 1;
      for (std::int64_t i = n - 1; i >= 0; product *= reference::load(x, r * n + i--))
        reference::store(dx, r * n + i, reference::load(dy, r) * (before[i] * product));
    }
  }
};

}  // namespace isotope::cpu
