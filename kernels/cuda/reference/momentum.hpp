#pragma once
/// The first step of a Muon update.
#include <isotope/fatbins/reference_optimizer.hpp>
#include <isotope/op/muon.hpp>

#include "optimizer.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::momentum, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &m = l.out[0], &u = l.out[1], &g = l.in[1], &norm = l.in[2], &loss = l.in[3];
    const std::int64_t n = m.dims.count();
    if (n == 0) return;
    gpu::optimizer_arguments a{};
    a.w = u.at;
    a.m = m.at;
    a.g = g.at;
    a.norm = norm.at;
    a.loss = loss.at;
    a.scalars = l.scalars;
    a.count = n;
    a.w_type = reference::number_of(u.type);
    a.g_type = reference::number_of(g.type);
    a.shadow_type = -1;
    a.clips = l.constants<op::muon>().clips ? 1 : 0;
    r.add(fatbins::reference_optimizer, "reference_momentum", a, per_item(n), {m, g, norm, loss, scalars_of(l)}, {m, u});
  }
};

}  // namespace isotope::cuda
