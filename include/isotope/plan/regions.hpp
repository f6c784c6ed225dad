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

namespace isotope {

enum class optimizer_kind : std::uint8_t { none, adamw, sgd };

/// How a training program is put together. Hyperparameters are step scalars, not part of the plan.
struct training_options {
  optimizer_kind optimizer = optimizer_kind::adamw;
  bool accumulate = false;  // several micro-batches per step
  recompute_policy recompute{};
  bool fuse = true;
};

/// Parameters start at multiples of 128 elements: 256-byte blocks in bf16, and the same element offsets in every region.
inline constexpr std::int64_t param_alignment = 128;

namespace plan_detail {

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

struct param_order {
  std::vector<std::int32_t> order;   // of trace::params: decaying, not decaying, frozen; each by path
  std::vector<std::int64_t> offset;  // elements, by position in trace::params
  std::int64_t decayed = 0, trained = 0, total = 0;
};
constexpr param_order arrange(const trace& g) {
  param_order r;
  r.offset.resize(g.params.size(), 0);
  for (int group = 0; group < 3; ++group) {
    for (std::size_t i = 0; i < g.params.size(); ++i) {
      const auto& p = g.params[i];
      if ((p.trainable ? (p.decay ? 0 : 1) : 2) != group) continue;
      r.order.push_back(std::int32_t(i));
      r.offset[i] = r.total;
      r.total += (g.values[std::size_t(p.value)].dims.count() + param_alignment - 1) / param_alignment * param_alignment;
    }
    if (group == 0) r.decayed = r.total;
    if (group == 1) r.trained = r.total;
  }
  return r;
}
constexpr void rebase(trace& g, std::int32_t v, std::int32_t region, std::int64_t offset) {
  value& x = g.values[std::size_t(v)];
  x.base = region;
  x.offset = offset;
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
    if ((zeros || producer.op->accumulates) && readers(g, root) == inplace) {
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
}  // namespace plan_detail

/// Parameters become parts of one region, in the order: decaying, not decaying, frozen.
constexpr plan_detail::param_order gather_params(tape& t) {
  plan_detail::sort_params(t.g);
  const auto order = plan_detail::arrange(t.g);
  if (order.total == 0) return order;
  const auto region = t.g.add_value({order.total}, t.program(), value_kind::param);
  for (std::size_t i = 0; i < t.g.params.size(); ++i) plan_detail::rebase(t.g, t.g.params[i].value, region, order.offset[i]);
  return order;
}

/// Appends gradient placement, global norm and the optimiser's update to a differentiated trace.
constexpr void append_optimizer(tape& t, std::int32_t loss, const training_options& o) {
  if (!t.ok()) return;
  trace& g = t.g;
  prune(g);
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
  g.outputs.push_back({name("loss"), total});
  if (order.trained == 0 || o.optimizer == optimizer_kind::none) return;

  const auto norm = t.record(info<op::global_norm>, {&grads, 1}, {}, place::current(), 0).out[0];
  g.nodes.back().phases = phase_last;
  g.values[std::size_t(norm)].kind = value_kind::output;
  g.outputs.push_back({name("grad_norm"), norm});

  const bool mixed = accum != t.program();
  const auto params = g.root(g.params[std::size_t(order.order[0])].value);
  const auto part = [&](std::int32_t region) {  // frozen parameters lie behind the trained ones
    const auto v = g.add_value({order.trained}, g.values[std::size_t(region)].type, g.values[std::size_t(region)].kind);
    plan_detail::rebase(g, v, region, 0);
    return v;
  };
  const auto weights = part(mixed ? g.add_value({order.total}, accum, value_kind::master) : params);
  std::array<std::int32_t, max_inputs> in{};
  std::size_t n = 0;
  in[n++] = weights;
  const int moments = o.optimizer == optimizer_kind::adamw ? 2 : 1;
  for (int k = 0; k < moments; ++k) in[n++] = g.add_value({order.trained}, accum, value_kind::state);
  if (mixed) in[n++] = part(params);
  in[n++] = grads;
  in[n++] = norm;
  in[n++] = total;
  attributes a;
  a.i = {order.decayed, mixed ? 1 : 0};
  const op_info& op = o.optimizer == optimizer_kind::adamw ? info<op::adamw> : info<op::sgd>;
  t.record(op, {in.data(), n}, a, place::current(), 0);
  g.nodes.back().phases = phase_last;
  g.nodes.back().effect = true;
}

/// Shards, collectives: tensor parallelism and ZeRO insert them here, between differentiation and fusion. One device needs none.
constexpr void distribute(tape&) {}

}  // namespace isotope
