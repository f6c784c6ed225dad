#pragma once
/// Products over any axes, and their gradient.
#include <isotope/op/prod.hpp>
#include <isotope/shaders/reference_prod.hpp>
#include <isotope/shaders/reference_prod_grad.hpp>

#include "stages.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::prod, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return reference::stage_bytes(s.out[0].count(), op::reduction::length(s.in[0], s.constants<op::prod>().axes));
  }
  static void record(const launch& l, recording& r) { reference::stages(l, r, shaders::reference_prod, {}, l.constants<op::prod>().axes); }
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
