#pragma once
/// Gathers parameters, gradients and optimiser state into contiguous regions and appends the optimiser's steps.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/copy.hpp"
#include "../op/fill.hpp"
#include "../op/matmul.hpp"
#include "../op/update.hpp"
#include "differentiate.hpp"
#include "muon.hpp"
#include "packed_weights.hpp"
#include "training_options.hpp"

namespace isotope {

/// Parameters start at multiples of 128 elements: 256-byte blocks in bf16, and the same element offsets in every region.
inline constexpr std::int64_t param_alignment = 128;

namespace plan_detail {

constexpr std::int64_t aligned(std::int64_t elements) { return (elements + param_alignment - 1) / param_alignment * param_alignment; }

/// Paths in the order of people: digits as numbers (h.2 before h.10), else by character.
constexpr bool path_before(std::string_view a, std::string_view b) {
  const auto digit = [](std::string_view s, std::size_t i) { return i < s.size() && s[i] >= '0' && s[i] <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a, i) && digit(b, j)) {
      std::uint64_t x = 0, y = 0;
      while (digit(a, i)) x = x * 10 + std::uint64_t(a[i++] - '0');
      while (digit(b, j)) y = y * 10 + std::uint64_t(b[j++] - '0');
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return i == a.size() && j < b.size();
}
/// Parameters by path. Trace order would not do: C++ leaves the order of a call's arguments open, and compilers use the freedom.
constexpr void sort_params(trace& g) {
  std::vector<std::int32_t> index;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    std::size_t at = index.size();
    index.push_back(0);
    for (; at > 0 && path_before(g.params[i].path.view(), g.params[std::size_t(index[at - 1])].path.view()); --at)
      index[at] = index[at - 1];
    index[at] = std::int32_t(i);
  }
  std::vector<parameter> sorted;
  sorted.reserve(index.size());
  for (auto i : index) sorted.push_back(g.params[std::size_t(i)]);
  g.params = static_cast<std::vector<parameter>&&>(sorted);
}

/// Parameters of one learning rate: elements [first, decayed) decay, [decayed, end) do not.
struct rate_group {
  double scale = 1;
  std::int64_t first = 0, decayed = 0, end = 0;
};
struct param_order {
  std::vector<std::int32_t> order;   // of trace::params: by learning rate, decaying before not decaying, by path; frozen ones last
  std::vector<std::int64_t> offset;  // elements, by position in trace::params
  std::vector<rate_group> rates;
  std::int64_t trained = 0, total = 0;
};
constexpr param_order arrange(const trace& g) {
  param_order r;
  r.offset.resize(g.params.size(), 0);
  const auto append = [&](auto&& chosen) {
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      const auto& p = g.params[i];
      if (!chosen(p) || g.values[std::size_t(p.value)].base >= 0) continue;
      r.order.push_back(std::int32_t(i));
      r.offset[i] = r.total;
      r.total += aligned(g.values[std::size_t(p.value)].dims.count());
    }
  };
  for (const auto& p : g.params) {
    bool known = !p.trainable;
    for (const auto& x : r.rates) known = known || x.scale == p.rate_scale;
    if (known) continue;
    rate_group x{p.rate_scale, r.total, 0, 0};
    append([&](const parameter& q) { return q.trainable && q.decay && q.rate_scale == x.scale; });
    x.decayed = r.total;
    append([&](const parameter& q) { return q.trainable && !q.decay && q.rate_scale == x.scale; });
    x.end = r.total;
    r.rates.push_back(x);
  }
  r.trained = r.total;
  append([](const parameter& q) { return !q.trainable; });
  return r;
}
constexpr void rebase(trace& g, std::int32_t v, std::int32_t region, std::int64_t offset) {
  value& x = g.values[std::size_t(v)];
  x.base = region;
  x.offset = offset;
}
/// The parameters of one format in a region of their own.
constexpr void gather_stored(trace& g, dtype type) {
  std::int64_t total = 0;
  const auto end_of = [&](const parameter& p) { return aligned(g.values[std::size_t(p.value)].dims.count()); };
  for (const auto& p : g.params)
    if (g.values[std::size_t(p.value)].type == type) total += end_of(p);
  if (total == 0) return;
  const auto region = g.add_value({total}, type, value_kind::param);
  std::int64_t at = 0;
  for (const auto& p : g.params)
    if (g.values[std::size_t(p.value)].type == type) {
      rebase(g, p.value, region, at);
      at += end_of(p);
    }
}
constexpr int readers(const trace& g, std::int32_t root) {
  int n = 0;
  for (const auto& node : g.nodes)
    if (!node.dead)
      for (int k = 0; k < node.inputs(); ++k) n += g.root(node.in[std::size_t(k)]) == root && node.op->kind != op_kind::view;
  return n;
}

/// Puts the gradient of one parameter into its slot of the gradient region: straight from the op that makes it where possible.
constexpr void place_gradient(tape& t, const parameter& p, std::int32_t region, std::int64_t offset, bool accumulate) {
  trace& g = t.g;
  const shape dims = g.values[std::size_t(p.value)].dims;
  const std::int32_t root = g.root(p.grad);
  const value& r = g.values[std::size_t(root)];
  const bool whole = r.kind == value_kind::temp && r.dims.count() == dims.count() && g.dense(p.grad) && g.root_offset(p.grad) == 0 &&
                     r.type == accum_of(t.program());
  if (whole && !accumulate) return rebase(g, root, region, offset);
  node& producer = g.nodes[std::size_t(r.producer < 0 ? 0 : r.producer)];
  if (whole && r.producer >= 0) {
    const bool zeros = producer.op == &info<op::fill> && producer.attr.f[0] == 0;
    int inplace = 0;  // a chain of in-place additions reads its own bytes
    for (const auto& n : g.nodes) inplace += !n.dead && n.op->inout == 1 && n.in[0] >= 0 && g.root(n.in[0]) == root;
    int owners = 0;  // one tensor may be the gradient of several parameters: sums in place would be added to each of them again
    for (const auto& q : g.params) owners += q.grad >= 0 && g.root(q.grad) == root;
    if ((zeros || producer.op->accumulates) && readers(g, root) == inplace && owners == 1) {
      if (zeros) producer.phases = phase_first;
      else producer.accumulate = 1;
      return rebase(g, root, region, offset);
    }
  }
  const auto slot = g.add_value(dims, accum_of(t.program()), value_kind::grad);
  rebase(g, slot, region, offset);
  if (accumulate) {
    const std::int32_t in[2] = {slot, p.grad};
    const auto out = t.record(info<op::accumulate>, in, {}, place::current(), 0);
    if (out.out[0] >= 0) {
      g.nodes.back().accumulate = 1;
      g.nodes.back().effect = true;
    }
  } else {
    const auto out = t.record(info<op::copy>, {&p.grad, 1}, {}, place::current(), 0);
    if (out.out[0] >= 0) {
      rebase(g, out.out[0], region, offset);
      g.nodes.back().effect = true;
    }
  }
}

constexpr std::int32_t part_of(trace& g, std::int32_t region, std::int64_t first, const shape& dims) {
  const auto v = g.add_value(dims, g.values[std::size_t(region)].type, g.values[std::size_t(region)].kind);
  rebase(g, v, region, first);
  return v;
}

/// Clips a flat gradient in place, in the last phase.
constexpr void clip_in_place(tape& t, const op_info& op, std::int32_t grad) {
  t.record(op, {&grad, 1}, {}, place::current(), 0);
  t.g.nodes.back().phases = phase_last;
  t.g.nodes.back().effect = true;
}
/// Clipping by value or by each tensor's norm, in place in the gradient region.
constexpr void clip_each(tape& t, const param_order& order, std::int32_t grads, clipping how) {
  if (how == clipping::value) clip_in_place(t, info<op::clip_value>, grads);
  if (how == clipping::tensor_norm)
    for (auto i : order.order)
      if (const auto& p = t.g.params[std::size_t(i)]; p.trainable)
        clip_in_place(t, info<op::clip_norm>,
                      part_of(t.g, grads, order.offset[std::size_t(i)], {t.g.values[std::size_t(p.value)].dims.count()}));
}

/// What the optimiser works on beside weights and gradients. Elements of the master and of the first moment lie as the parameters do, those of the
/// second one as parameter::second says: Muon's matrices have none.
struct update_regions {
  std::int32_t master = -1;  // -1: weights are in accumulation format themselves
  std::array<std::int32_t, 2> moment{};
  int moments = 0;
  std::int64_t trained = 0;  // elements
};
constexpr update_regions add_update_regions(tape& t, const param_order& order, optimizer_kind kind) {
  const dtype accum = accum_of(t.program());
  update_regions r;
  if (accum != t.program()) r.master = t.g.add_value({order.total}, accum, value_kind::master);
  r.moments = kind == optimizer_kind::sgd ? 1 : 2;
  r.trained = order.trained;
  r.moment[0] = t.g.add_value({order.trained}, accum, value_kind::state);
  if (r.moments == 1) return r;
  std::int64_t second = 0;
  for (const auto i : order.order) {
    auto& p = t.g.params[std::size_t(i)];
    if (!p.trainable || p.muon > 0) continue;
    p.second = second;
    second += aligned(t.g.values[std::size_t(p.value)].dims.count());
  }
  r.moment[1] = t.g.add_value({second}, accum, value_kind::state);
  return r;
}

/// One launch of the optimiser on elements [first, first + params.count()) of the regions, or Muon's launches on one matrix.
struct update_operands {
  std::int32_t params, grads;  // of these elements
  std::int32_t packed;         // a copy that the update keeps, of one weight of so many columns; -1: none
  std::int64_t columns;
  std::int32_t norm, loss;
  std::int64_t first, second, decaying;  // `second`: in the region of second moments; `decaying` elements decay, the first ones
  double rate_scale;
  bool matrix = false;  // Muon's
};
constexpr void record_update(tape& t, const update_regions& r, const update_operands& x, const training_options& o) {
  trace& g = t.g;
  const shape n = g.values[std::size_t(x.params)].dims;
  const bool mixed = r.master >= 0, clips = o.clip == clipping::global_norm;
  const op_info& op = x.matrix ? info<op::muon> : o.optimizer == optimizer_kind::sgd ? info<op::sgd> : info<op::adamw>;
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
  attributes a;
  a.i = {x.decaying, mixed ? 1 : 0, clips ? 1 : 0, x.packed >= 0 ? x.columns : 0, r.trained};
  a.f = {x.rate_scale, x.matrix ? muon_factor(n) : 0.0};
  t.record(op, {operands.data(), k}, a, place::current(), 0);
  if (!t.ok()) return;
  g.nodes.back().phases = phase_last;
  g.nodes.back().effect = true;
}

/// One launch of the optimiser for each weight that has a packed copy, and for each run of other parameters with one learning rate. Muon's
/// matrices are updated one by one.
constexpr void update(tape& t, const param_order& order, std::int32_t grads, std::int32_t norm, std::int32_t loss,
                      const training_options& o) {
  const trace& g = t.g;
  const auto params = g.root(g.params[std::size_t(order.order[0])].value);
  const auto regions = add_update_regions(t, order, o.optimizer);
  std::int64_t matrices = 0;  // elements of Muon's so far
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
}  // namespace plan_detail

/// Regroups parameters before they are differentiated; which values want a gradient follows from what is trained.
constexpr void regroup(tape& t, grouping group) {
  if (group == nullptr) return;
  for (auto& p : t.g.params) {
    value& v = t.g.values[std::size_t(p.value)];
    const auto r = group(p.path.view(), v.dims, {p.decay, p.trainable, p.rate_scale, p.muon});
    if (!t.good_rate(p.path, r.rate_scale, place::current())) return;
    p.decay = r.decay;
    p.trainable = r.trainable;
    p.rate_scale = r.rate_scale;
    p.muon = r.muon;
    v.wants_gradient = r.trainable;
  }
  for (const auto& n : t.g.nodes) {
    bool wants = false;
    for (int k = 0; k < n.inputs(); ++k) wants = wants || t.g.values[std::size_t(n.in[std::size_t(k)])].wants_gradient;
    for (int k = 0; k < n.outputs(); ++k) {
      value& y = t.g.values[std::size_t(n.out[std::size_t(k)])];
      y.wants_gradient = wants && n.op->gradient != nullptr && is_floating(y.type);
    }
  }
}

/// Parameters become parts of one region, in the order of plan_detail::param_order; those of another format than the program's (inference alone)
/// of one region for each format.
constexpr plan_detail::param_order gather_params(tape& t) {
  plan_detail::sort_params(t.g);
  for (const dtype type : {dtype::f16, dtype::bf16})
    if (type != t.program()) plan_detail::gather_stored(t.g, type);
  const auto order = plan_detail::arrange(t.g);
  if (order.total == 0) return order;
  const auto region = t.g.add_value({order.total}, t.program(), value_kind::param);
  for (std::size_t i = 0; i < t.g.params.size(); ++i)
    if (t.g.values[std::size_t(t.g.params[i].value)].base < 0) plan_detail::rebase(t.g, t.g.params[i].value, region, order.offset[i]);
  return order;
}

namespace plan_detail {
constexpr bool packs(const training_options& o) {
  return (o.optimizer == optimizer_kind::adamw || o.optimizer == optimizer_kind::muon) &&
         (o.pack == packing::always || (o.pack == packing::amortized && o.accumulate));
}
}  // namespace plan_detail

/// Appends gradient placement, global norm and the optimiser's update to a differentiated trace.
constexpr void append_optimizer(tape& t, std::int32_t loss, const training_options& o) {
  if (!t.ok()) return;
  trace& g = t.g;
  g.outputs.push_back({name("loss"), loss});  // before pruning: gradients alone need not keep the loss
  prune(g);
  if (plan_detail::packs(o)) pack_weights(t, o.optimizer);
  const auto order = gather_params(t);
  const dtype accum = accum_of(t.program());
  const auto grads = g.add_value({order.trained}, accum, value_kind::grad);
  for (auto i : order.order)
    if (g.params[std::size_t(i)].trainable && g.params[std::size_t(i)].grad >= 0)
      plan_detail::place_gradient(t, g.params[std::size_t(i)], grads, order.offset[std::size_t(i)], o.accumulate);
  std::int32_t total = loss;
  if (o.accumulate) {
    const auto sum = g.add_value({}, accum, value_kind::output);
    const std::int32_t in[2] = {sum, loss};
    total = t.record(info<op::accumulate>, in, {}, place::current(), 0).out[0];
    g.nodes.back().accumulate = 1;
    g.nodes.back().effect = true;
  } else {
    g.values[std::size_t(g.root(loss))].kind = value_kind::output;
  }
  g.outputs.back().value = total;
  if (order.trained == 0 || o.optimizer == optimizer_kind::none) return;

  plan_detail::clip_each(t, order, grads, o.clip);
  const auto norm = t.record(info<op::global_norm>, {&grads, 1}, {}, place::current(), 0).out[0];
  g.nodes.back().phases = phase_last;
  g.values[std::size_t(norm)].kind = value_kind::output;
  g.outputs.push_back({name("grad_norm"), norm});
  plan_detail::update(t, order, grads, norm, total, o);
}

/// Shards, collectives: tensor parallelism and ZeRO insert them here, between differentiation and fusion. One device needs none.
constexpr void distribute(tape&) {}

}  // namespace isotope
