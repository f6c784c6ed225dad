#pragma once
/// The first and the last step of a Muon update.
#include <isotope/op/muon.hpp>
#include <isotope/shaders/reference_momentum.hpp>
#include <isotope/shaders/reference_muon.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// Mirrors optimizer_operands in optimizer.glsl.
struct muon_push {
  std::uint64_t w, m, v, shadow, g, norm, loss, scalars;
  std::uint32_t count, decaying;
  float rate, size;
};

}  // namespace reference

template <class P> struct kernel<op::momentum, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &m = l.out[0], &u = l.out[1], &g = l.in[1], &norm = l.in[2], &loss = l.in[3];
    const auto n = m.dims.count();
    if (n == 0) return;
    const reference::muon_push push{u.at, m.at, 0, 0, g.at, norm.at, loss.at, l.scalars, reference::word(n), 0, 0, 0};
    auto c = reference::plain(l);
    c.add(u.type).add(dtype::f32).add(false).add(l.constants<op::muon>().clips);
    r.add(shaders::reference_momentum, c, push, reference::per_item(n), {m, g, norm, loss, reference::scalars_of(l)}, {m, u});
  }
};

template <class P> struct kernel<op::muon, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &w = l.out[0], &x = l.in[l.in.size() - 3], &norm = l.in[l.in.size() - 2], &loss = l.in[l.in.size() - 1];
    const auto n = w.dims.count();
    if (n == 0) return;
    const bool shadow = l.constants<op::muon>().shadow;
    const reference::muon_push push{w.at,
                                    0,
                                    0,
                                    shadow ? l.out[1].at : 0,
                                    x.at,
                                    norm.at,
                                    loss.at,
                                    l.scalars,
                                    reference::word(n),
                                    reference::word(l.constants<op::muon>().decaying < n ? l.constants<op::muon>().decaying : n),
                                    float(l.constants<op::muon>().rate_scale),
                                    float(l.constants<op::muon>().direction_scale)};
    std::vector<range> writes{w}, reads{w, x, norm, loss, reference::scalars_of(l)};
    if (shadow) writes.push_back(l.out[1]);
    auto c = reference::plain(l);
    c.add(w.type).add(shadow ? l.out[1].type : dtype::f32).add(shadow).add(false).add(x.type);
    r.add(shaders::reference_muon, c, push, reference::per_item(n), std::move(reads), std::move(writes));
  }
};

}  // namespace isotope::vulkan
