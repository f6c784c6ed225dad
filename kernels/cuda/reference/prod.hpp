#pragma once
/// Products over any axes, and their gradient.
#include <isotope/fatbins/reference_prod.hpp>
#include <isotope/op/prod.hpp>

#include "stages.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::prod, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return reference::stage_bytes(s.out[0].count(), op::reduction::length(s.in[0], s.constants<op::prod>().axes));
  }
  static void record(const launch& l, recording& r) {
    reference::stages(l, r, fatbins::reference_prod, "reference_prod", 0, l.constants<op::prod>().axes);
  }
};
template <class P> struct kernel<op::prod_grad, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * s.in[0].count(); }
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    if (dx.dims.count() == 0) return;
    using reference::number_of;
    const gpu::prod_grad_arguments a{
        x.at, dy.at, dx.at, l.scratch, x.dims[0], x.dims[1], number_of(x.type), number_of(dy.type), number_of(dx.type)};
    r.add(fatbins::reference_prod, "reference_prod_grad", a, per_item(x.dims[0]), {x, dy}, {dx, range(l.scratch, 4 * dx.dims.count())});
  }
};

}  // namespace isotope::cuda
