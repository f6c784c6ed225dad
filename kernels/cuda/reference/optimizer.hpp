#pragma once
/// What the updates of adamw, sgd and muon share, on the host.
#include <algorithm>

#include <isotope/op/update_rule.hpp>

#include "items.hpp"
#include "optimizer.h"

namespace isotope::cuda::reference {

/// The operands of an update: w, then `moments` moments, [shadow,] g, norm, loss. Muon's g is the direction.
struct update_operands {
  const launch& l;
  std::size_t moments;
  op::update_rule::constants is;
  const view &w, &g, &norm, &loss;

  update_operands(const launch& given, std::size_t moment_count)
      : l(given),
        moments(moment_count),
        is(l.constants<op::update_rule>()),
        w(l.out[0]),
        g(l.in[l.in.size() - 3]),
        norm(l.in[l.in.size() - 2]),
        loss(l.in[l.in.size() - 1]) {}
  const view& shadow() const { return l.out[1 + moments]; }

  /// Returns the arguments for elements [first, first + n).
  gpu::optimizer_arguments arguments(std::int64_t first, std::int64_t n) const {
    const auto at = [&](const view& x) { return x.at + std::uint64_t(first * size_of(x.type)); };
    gpu::optimizer_arguments a{};
    a.w = at(w);
    if (moments > 0) a.m = at(l.out[1]);
    if (moments > 1) a.v = at(l.out[2]);
    if (is.shadow) a.shadow = at(shadow());
    a.g = at(g);
    a.norm = norm.at;
    a.loss = loss.at;
    a.scalars = l.scalars;
    a.count = n;
    a.decaying = std::clamp<std::int64_t>(is.decaying - first, 0, n);
    a.rate = float(is.rate_scale);
    a.size = float(is.direction_scale);
    a.w_type = number_of(w.type);
    a.g_type = number_of(g.type);
    a.shadow_type = is.shadow ? number_of(shadow().type) : -1;
    a.clips = is.clips ? 1 : 0;
    return a;
  }
};

}  // namespace isotope::cuda::reference
