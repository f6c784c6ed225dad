#pragma once
/// What the updates of adamw, sgd and muon share, on the host.
#include <algorithm>

#include <isotope/op/update_rule.hpp>

#include "items.hpp"

namespace isotope::vulkan::reference {

/// Mirrors optimizer_operands in optimizer.glsl, and the further factor of muon.comp.
struct optimizer_push {
  std::uint64_t w = 0, m = 0, v = 0, shadow = 0, g = 0, norm = 0, loss = 0, scalars = 0;
  std::uint32_t count = 0, decaying = 0;
  float rate = 0, size = 0;
};

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

  /// Returns the push constants of elements [first, first + n).
  optimizer_push push(std::int64_t first, std::int64_t n) const {
    const auto at = [&](const view& x) { return x.at + std::uint64_t(first * size_of(x.type)); };
    optimizer_push p;
    p.w = at(w);
    if (moments > 0) p.m = at(l.out[1]);
    if (moments > 1) p.v = at(l.out[2]);
    if (is.shadow) p.shadow = at(shadow());
    p.g = at(g);
    p.norm = norm.at;
    p.loss = loss.at;
    p.scalars = l.scalars;
    p.count = word(n);
    p.decaying = word(std::clamp<std::int64_t>(is.decaying - first, 0, n));
    p.rate = float(is.rate_scale);
    p.size = float(is.direction_scale);
    return p;
  }
  /// Returns `c` and the constants of optimizer.glsl.
  constants specialization(constants c, bool clips) const {
    return c.add(w.type).add(is.shadow ? shadow().type : dtype::f32).add(is.shadow).add(clips);
  }
};

}  // namespace isotope::vulkan::reference
