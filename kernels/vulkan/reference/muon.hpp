#pragma once
/// The first and the last step of a Muon update.
#include <isotope/op/muon.hpp>
#include <isotope/shaders/reference_momentum.hpp>
#include <isotope/shaders/reference_muon.hpp>

#include "optimizer.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::momentum, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &m = l.out[0], &u = l.out[1], &g = l.in[1], &norm = l.in[2], &loss = l.in[3];
    const auto n = m.dims.count();
    if (n == 0) return;
    const reference::optimizer_push push{u.at, m.at, 0, 0, g.at, norm.at, loss.at, l.scalars, reference::word(n)};
    auto c = reference::plain(l);
    c.add(u.type).add(dtype::f32).add(false).add(l.constants<op::muon>().clips);
    r.add(shaders::reference_momentum, c, push, reference::per_item(n), {m, g, norm, loss, reference::scalars_of(l)}, {m, u});
  }
};

template <class P> struct kernel<op::muon, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const reference::update_operands o(l, 0);
    const auto n = o.w.dims.count();
    if (n == 0) return;
    std::vector<range> writes{o.w}, reads{o.w, o.g, o.norm, o.loss, reference::scalars_of(l)};
    if (o.is.shadow) writes.push_back(o.shadow());
    r.add(shaders::reference_muon, o.specialization(reference::plain(l), false).add(o.g.type), o.push(0, n), reference::per_item(n),
          std::move(reads), std::move(writes));
  }
};

}  // namespace isotope::vulkan
