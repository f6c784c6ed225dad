#pragma once
/// The first and the last step of a Muon update.
#include <isotope/op/muon.hpp>

#include "update.hpp"

namespace isotope::cpu {

template <class P> struct kernel<op::momentum, P, kernels::reference> {
  static void run(const launch& l) {
    using A = typename P::accum;
    const reference::update_operands<A> step(l);
    const A momentum = A(l.scalars->momentum);
    const view &m = l.out[0], &u = l.out[1];
    for (std::int64_t i = 0; i < m.dims.count(); ++i) {
      if (step.skipped) {
        reference::store(u, i, 0);
        continue;
      }
      const A g = step.factor * A(reference::load(step.g, i)), m1 = momentum * A(reference::load(m, i)) + g;
      reference::store(m, i, double(m1));
      reference::store(u, i, double(g + momentum * m1));
    }
  }
};

template <class P> struct kernel<op::muon, P, kernels::reference> {
  static void run(const launch& l) {
    using A = typename P::accum;
    const reference::update_operands<A> step(l);
    if (step.skipped) return;
    const auto c = l.constants<op::muon>();
    const A rate = A(l.scalars->learning_rate) * A(c.rate_scale), size = A(c.direction_scale), decay = A(l.scalars->weight_decay);
    const view& w = l.out[0];
    for (std::int64_t i = 0; i < w.dims.count(); ++i) {
      const A w0 = A(reference::load(w, i)), kept = i < step.decaying ? w0 - rate * decay * w0 : w0;
      const A w1 = kept - rate * size * A(reference::load(step.g, i));
      reference::store(w, i, double(w1));
      if (c.shadow) reference::store(l.out[1], i, double(w1));
    }
  }
};

}  // namespace isotope::cpu
