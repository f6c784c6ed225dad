#pragma once
/// The first and the last step of a Muon update: dispatches over a matrix in memory order, four elements per invocation, bound by bytes.
#include <isotope/kernels/vulkan/reference/muon.hpp>
#include <isotope/op/muon.hpp>
#include <isotope/shaders/momentum.hpp>
#include <isotope/shaders/muon.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::momentum, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    using namespace portable;
    const view &m = l.out[0], &u = l.out[1], &g = l.in[1], &norm = l.in[2], &loss = l.in[3];
    in_pieces(m.dims.count(), [&](std::int64_t first, std::int64_t n) {
      const reference::optimizer_push push{offset(u, first), offset(m, first), 0,         0,      offset(g, first),
                                           norm.at,          loss.at,          l.scalars, word(n)};
      const range moment = elements(push.m, n, m.type);
      r.add(shaders::momentum, flat(l).add(u.type).add(dtype::f32).add(false).add(l.constants<op::muon>().clips), push, per_four(n),
            {moment, elements(push.g, n, g.type), norm, loss, scalars_of(l)}, {moment, elements(push.w, n, u.type)});
    });
  }
};

template <class P> struct kernel<op::muon, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    using namespace portable;
    const reference::update_operands o(l, 0);
    in_pieces(o.w.dims.count(), [&](std::int64_t first, std::int64_t n) {
      const auto push = o.push(first, n);
      const range weights = elements(push.w, n, o.w.type);
      std::vector<range> writes{weights}, reads{weights, elements(push.g, n, o.g.type), o.norm, o.loss, scalars_of(l)};
      if (o.is.shadow) writes.push_back(elements(push.shadow, n, o.shadow().type));
      r.add(shaders::muon, o.specialization(flat(l), false).add(o.g.type), push, per_four(n), std::move(reads), std::move(writes));
    });
  }
};

}  // namespace isotope::vulkan
