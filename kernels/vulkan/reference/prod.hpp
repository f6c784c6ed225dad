#pragma once
/// Products over any axes, and their gradient.
#include <isotope/op/prod.hpp>
#include <isotope/shaders/reference_prod.hpp>
#include <isotope/shaders/reference_prod_grad.hpp>

#include "total.hpp"

namespace isotope::vulkan {
namespace reference {

struct prod {
  /// Returns the bytes for the products of the parts, in f32.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    std::int64_t bytes = 0;
    for (auto terms = op::reduction::length(s.in[0], s.constants<op::prod>().axes); terms > part_terms;)
      bytes += 4 * s.out[0].count() * (terms = parts_of(terms));
    return bytes;
  }
  static void stage(const launch& l, recording& r, const view& x, const axes_apart& a, std::int64_t parts, const view& y) {
    std::int64_t results = 1, terms = 1;
    for (int k = 0; k < a.rank; ++k) (k < a.outer ? results : terms) *= a.dims[std::size_t(k)];
    if (results == 0) return;
    const struct {
      std::uint64_t x, y;
      std::uint32_t results, terms, parts, outer;
      std::array<std::uint32_t, max_rank> dims, strides;
    } push{x.at, y.at, word(results), word(terms), word(parts), std::uint32_t(a.outer), a.dims, a.strides};
    r.add(shaders::reference_prod, plain(l).add(x.type).add(y.type), push, per_item(results * parts), {x}, {y});
  }
  static void record(const launch& l, recording& r) {
    view x = l.in[0];
    std::int64_t mask = l.constants<op::prod>().axes;
    const auto results = l.out[0].dims.count();
    auto at = l.scratch;
    for (auto terms = op::reduction::length(x.dims, mask); terms > part_terms;) {
      const auto parts = parts_of(terms);
      const shape dims{parts, results};
      const view products{at, 4 * parts * results, dims, dense_strides(dims), dtype::f32};
      stage(l, r, x, axes_apart(x, mask), parts, products);
      x = products;
      mask = 1;
      terms = parts;
      at += std::uint64_t(products.bytes);
    }
    stage(l, r, x, axes_apart(x, mask), 1, l.out[0]);
  }
};

}  // namespace reference

template <class P> struct kernel<op::prod, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::prod::scratch(s); }
  static void record(const launch& l, recording& r) { reference::prod::record(l, r); }
};
template <class P> struct kernel<op::prod_grad, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[0].count(); }
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    if (dx.dims.count() == 0) return;
    const struct {
      std::uint64_t x, dy, dx, before;
      std::uint32_t rows, n;
    } push{x.at, dy.at, dx.at, l.scratch, reference::word(x.dims[0]), reference::word(x.dims[1])};
    r.add(shaders::reference_prod_grad, reference::plain(l).add(x.type).add(dy.type).add(dx.type), push, reference::per_item(x.dims[0]),
          {x, dy}, {dx, range(l.scratch, 4 * dx.dims.count())});
  }
};

}  // namespace isotope::vulkan
