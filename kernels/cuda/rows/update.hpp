#pragma once
/// What the updates of adamw, sgd and muon share.
#include <isotope/fatbins/update.hpp>
#include <isotope/op/update_rule.hpp>

#include "flat.hpp"

namespace isotope::cuda::portable {

/// Records an update with operands w, then `moments` moments, [shadow,] g, norm, loss; the g of Muon is the direction.
inline void record_update(const launch& l, recording& r, std::string_view function, std::size_t moments) {
  const auto c = l.constants<op::update_rule>();
  const view &w = l.out[0], &g = l.in[l.in.size() - 3], &norm = l.in[l.in.size() - 2], &loss = l.in[l.in.size() - 1];
  const std::int64_t count = w.dims.count();
  if (count == 0) return;
  const view* shadow = c.shadow ? &l.out[1 + moments] : nullptr;
  gpu::update_operands a{};
  a.w = w.at;
  a.w_type = std::int32_t(w.type);
  if (moments > 0) a.m = l.out[1].at;
  if (moments > 1) a.v = l.out[2].at;
  if (shadow != nullptr) {
    a.shadow = shadow->at;
    a.shadow_type = std::int32_t(shadow->type);
  }
  a.g = g.at;
  a.g_type = std::int32_t(g.type);
  a.norm = norm.at;
  a.loss = loss.at;
  a.scalars = l.scalars;
  a.count = count;
  a.decaying = c.decaying;
  a.clips = moments > 0 && c.clips;
  a.wide = a.w % 16 == 0 && a.m % 16 == 0 && a.v % 16 == 0 && a.shadow % 16 == 0 && a.g % 16 == 0;
  a.rate = float(c.rate_scale);
  a.size = float(c.direction_scale);
  std::vector<range> writes{w};
  for (std::size_t k = 1; k <= moments; ++k) writes.push_back(l.out[k]);
  std::vector<range> reads = writes;
  reads.insert(reads.end(), {g, norm, loss, scalars_of(l)});
  if (shadow != nullptr) writes.push_back(*shadow);
  r.add(fatbins::update, function, a, per_item(divide_up(count, gpu::flat_elems)), std::move(reads), std::move(writes));
}

}  // namespace isotope::cuda::portable
