#pragma once
/// Appends the optimiser's steps to a differentiated trace and gathers its moments into contiguous regions.
#include <array>
#include <cstdint>

#include "../op/accumulate.hpp"
#include "../op/adamw.hpp"
#include "../op/global_norm.hpp"
#include "../op/sgd.hpp"
#include "data_parallel.hpp"
#include "differentiate.hpp"
#include "gradients.hpp"
#include "muon.hpp"
#include "packed_weights.hpp"

namespace isotope {

namespace plan_detail {

/// The regions of the optimiser beside weights and gradients. Master weights and first moments have the element offsets of the parameters; second
/// moments have those of parameter::second, because Muon's matrices have none.
struct update_regions {
  std::int32_t master = -1;  // -1: the weights themselves are in accumulation format
  std::array<std::int32_t, 2> moment{};
  int moments = 0;
  std::int64_t trained = 0;  // elements
};
constexpr update_regions add_update_regions(tape& t, const param_order& order, optimizer_kind kind) {
  const dtype accum = accum_of(t.program());
  update_regions r;
  if (t.g.shards_updates) {  // each data index has those of its pieces, one behind the other
    r.trained = order.trained / t.g.mesh.data;
    r.moments = kind == optimizer_kind::sgd ? 1 : 2;
    if (accum != t.program()) r.master = t.g.add_value({r.trained}, accum, value_kind::master);
    for (int m = 0; m < r.moments; ++m) r.moment[std::size_t(m)] = t.g.add_value({r.trained}, accum, value_kind::moment);
    return r;
  }
  if (accum != t.program()) r.master = t.g.add_value({order.total}, accum, value_kind::master);
  r.moments = kind == optimizer_kind::sgd ? 1 : 2;
  r.trained = order.trained;
  r.moment[0] = t.g.add_value({order.trained}, accum, value_kind::moment);
  if (r.moments == 1) return r;
  std::int64_t matrices = 0;  // elements of Muon's matrices so far
  for (const auto i : order.order) {
    auto& p = t.g.params[std::size_t(i)];
    if (!p.trainable) continue;
    if (p.muon > 0) matrices += aligned(t.g.values[std::size_t(p.value)].dims.count());
    else p.second = order.offset[std::size_t(i)] - matrices;
  }
  r.moment[1] = t.g.add_value({order.trained - matrices}, accum, value_kind::moment);
  return r;
}

/// One launch of the optimiser on elements [first, first + params.count()) of the regions, or Muon's launches on one matrix.
struct update_operands {
  std::int32_t params, grads;  // of these elements
  std::int32_t packed;         // packed copy of a single weight with so many columns, which the update maintains; -1: none
  std::int64_t columns;
  std::int32_t norm, loss;
  std::int64_t first, second, decaying;  // second: offset in the region of second moments; decaying: so many first elements decay
  double rate_scale;
  bool matrix = false;  // whether Muon updates it
};
constexpr void record_update(tape& t, const update_regions& r, const update_operands& x, const training_options& o) {
  trace& g = t.g;
  const shape n = g.values[std::size_t(x.params)].dims;
  const bool mixed = r.master >= 0, clips = o.clip == clipping::global_norm;
  const op_rules& op = x.matrix ? rules<op::muon> : o.optimizer == optimizer_kind::sgd ? rules<op::sgd> : rules<op::adamw>;
  const auto direction = x.matrix ? muon_direction(t, part_of(g, r.moment[0], x.first, n), x.grads, x.norm, x.loss, clips) : x.grads;
  std::array<std::int32_t, max_inputs> operands{};
  std::size_t k = 0;
  operands[k++] = mixed ? part_of(g, r.master, x.first, n) : x.params;
  for (int m = 0; m < r.moments && !x.matrix; ++m) operands[k++] = part_of(g, r.moment[std::size_t(m)], m == 0 ? x.first : x.second, n);
  if (mixed) operands[k++] = x.params;
  if (x.packed >= 0) operands[k++] = x.packed;
  operands[k++] = direction;
  operands[k++] = x.norm;
  operands[k++] = x.loss;
  const op::update_rule::constants a{.decaying = x.decaying,
                                     .shadow = mixed,
                                     .clips = clips,
                                     .columns = x.packed >= 0 ? x.columns : 0,
                                     .written = r.trained,
                                     .rate_scale = x.rate_scale,
                                     .direction_scale = x.matrix ? muon_factor(n) : 0.0};
  t.record(op, {operands.data(), k}, a, place::current(), 0);
  if (!t.ok()) return;
  g.nodes.back().phases = phase_last;
  g.nodes.back().effect = true;
}

/// Makes one launch of the optimiser for each weight with a packed copy and for each run of other parameters with one learning rate. Muon's matrices
/// are updated one by one.
constexpr void update(tape& t, const param_order& order, std::int32_t grads, std::int32_t norm, std::int32_t loss,
                      const training_options& o) {
  const trace& g = t.g;
  const auto params = g.root(g.params[std::size_t(order.order[0])].value);
  const auto regions = add_update_regions(t, order, o.optimizer);
  std::int64_t matrices = 0;  // elements of Muon's matrices so far
  for (const auto& x : order.rates) {
    const auto launch = [&](std::int64_t from, const shape& n, std::int32_t packed, bool matrix) {
      const std::int64_t to = from + n.count();
      if (from >= to) return;
      const std::int64_t decaying = x.decayed <= from ? 0 : x.decayed < to ? x.decayed - from : to - from;
      const auto weights = part_of(t.g, params, from, n), gradients = part_of(t.g, grads, from, n);
      const std::int64_t columns = packed < 0 ? 0 : n[-1];
      record_update(t, regions, {weights, gradients, packed, columns, norm, loss, from, from - matrices, decaying, x.scale, matrix}, o);
    };
    std::int64_t from = x.first;
    for (const auto i : order.order) {
      const parameter p = g.params[std::size_t(i)];
      const std::int64_t at = order.offset[std::size_t(i)];
      if ((p.packed < 0 && p.muon <= 0) || at < x.first || at >= x.end) continue;
      const shape dims = g.values[std::size_t(p.value)].dims;
      launch(from, {at - from}, -1, false);
      launch(at, dims, p.packed, p.muon > 0);
      from = at + aligned(dims.count());
      if (p.muon > 0) matrices += from - at;
    }
    launch(from, {x.end - from}, -1, false);
  }
}

/// The buckets in the order in which they are updated: the largest first. An update runs beside the exchange of the bucket before, so that only the last exchange has
/// nothing beside it.
constexpr std::vector<std::size_t> update_sequence(const param_order& order) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < order.buckets.size(); ++i) {
    std::size_t at = all.size();
    all.push_back(i);
    for (; at > 0 && order.buckets[all[at - 1]].elements < order.buckets[i].elements; --at) all[at] = all[at - 1];
    all[at] = i;
  }
  return all;
}

/// With ZeRO-1: each data index updates its piece of each bucket and gets the others' pieces of the parameters.
constexpr void update_pieces(tape& t, const param_order& order, std::int32_t grads, std::int32_t norm, std::int32_t loss,
                             const training_options& o) {
  const auto params = t.g.root(t.g.params[std::size_t(order.order[0])].value);
  const auto regions = add_update_regions(t, order, o.optimizer);
  std::vector<std::int64_t> pieces;  // where they are in the regions of the optimiser
  std::int64_t end = 0;
  for (const auto& b : order.buckets) {
    pieces.push_back(end);
    end += b.elements / t.g.mesh.data;
  }
  for (const std::size_t i : update_sequence(order)) {
    const auto& b = order.buckets[i];
    const std::int64_t each = b.elements / t.g.mesh.data, at = pieces[i];
    const auto weights = piece_of(t.g, params, b), gradients = piece_of(t.g, grads, b);
    record_update(t, regions, {weights, gradients, -1, 0, norm, loss, at, at, b.decay ? each : 0, b.scale}, o);
    if (!t.ok()) return;
    exchange(t, rules<op::all_gather_pieces>, part_of(t.g, params, b.first, {b.elements}), rank_group::data);
  }
}

/// Packs weights where the options say so and the optimiser's updates keep the copies.
constexpr void pack_weights(tape& t, const training_options& o) {
  if (t.g.shards_updates) return;  // no device updates a whole weight
  if (o.pack != packing::always && !(o.pack == packing::amortized && o.accumulate)) return;
  if (o.optimizer == optimizer_kind::adamw) isotope::pack_weights(t, {&info<op::adamw>});
  if (o.optimizer == optimizer_kind::muon) isotope::pack_weights(t, {&info<op::adamw>, &info<op::muon>});
}

}  // namespace plan_detail

/// Appends gradient placement, global norm and the optimiser's update to a differentiated trace.
constexpr void append_optimizer(tape& t, std::int32_t loss, const training_options& o) {
  if (!t.ok()) return;
  trace& g = t.g;
  if (g.mesh.data > 1) loss = scale(tensor<tape>{&t, loss}, 1.0 / g.mesh.data).id;
  if (!t.ok()) return;
  g.outputs.push_back({name("loss"), loss});  // added before pruning, because gradients alone need not keep the loss
  prune(g);
  plan_detail::pack_weights(t, o);
  const auto order = gather_params(t);
  const dtype accum = accum_of(t.program());
  const auto grads = g.add_value({order.trained}, accum, value_kind::grad);
  for (auto i : order.order)
    if (g.params[std::size_t(i)].trainable && g.params[std::size_t(i)].grad >= 0)
      plan_detail::place_gradient(t, g.params[std::size_t(i)], grads, order.offset[std::size_t(i)], o.accumulate);
  std::int32_t total = loss, sum = loss;
  if (o.accumulate) {
    sum = g.add_value({}, accum, value_kind::output);
    const std::int32_t in[2] = {sum, loss};
    total = t.record(rules<op::accumulate>, in, {}, place::current(), 0).out[0];
    g.nodes.back().accumulate = 1;
    g.nodes.back().effect = true;
  } else {
    g.values[std::size_t(g.root(loss))].kind = value_kind::output;
  }
  if (g.mesh.data > 1) total = plan_detail::exchange(t, rules<op::all_reduce>, sum, rank_group::data);  // the mean over all rows
  g.outputs.back().value = total;
  plan_detail::reduce_gradients(t, order, grads);
  if (order.trained == 0 || o.optimizer == optimizer_kind::none) return;

  plan_detail::clip_each(t, order, grads, o.clip);
  const auto norm = g.mesh.single() ? t.record(rules<op::global_norm>, {&grads, 1}, {}, place::current(), 0).out[0]
                                    : plan_detail::norm_of_all(t, order, grads);
  if (!t.ok()) return;
  g.nodes.back().phases = phase_last;
  g.values[std::size_t(norm)].kind = value_kind::output;
  g.outputs.push_back({name("grad_norm"), norm});
  if (g.shards_updates) plan_detail::update_pieces(t, order, grads, norm, total, o);
  else plan_detail::update(t, order, grads, norm, total, o);
}

}  // namespace isotope
