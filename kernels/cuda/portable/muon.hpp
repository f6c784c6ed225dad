#pragma once
/// The first and the last step of a Muon update: over a matrix in memory order, bound by bytes.
#include <isotope/op/muon.hpp>

#include <isotope/kernels/cuda/rows/update.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::momentum, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &m = l.out[0], &u = l.out[1], &g = l.in[1], &norm = l.in[2], &loss = l.in[3];
    const std::int64_t count = m.dims.count();
    if (count == 0) return;
    gpu::update_operands a{};
    a.w = u.at;
    a.w_type = std::int32_t(u.type);
    a.m = m.at;
    a.g = g.at;
    a.g_type = std::int32_t(g.type);
    a.norm = norm.at;
    a.loss = loss.at;
    a.scalars = l.scalars;
    a.count = count;
    a.clips = l.constants<op::muon>().clips;
    a.wide = portable::all_aligned(u, m, g);
    r.add(fatbins::update, "momentum", a, per_item(portable::divide_up(count, gpu::flat_elems)), {m, g, norm, loss, scalars_of(l)}, {m, u});
  }
};

template <GpuPrecision P> struct kernel<op::muon, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_update(l, r, "muon", 0); }
};

}  // namespace isotope::cuda
