#pragma once
/// update_policy::within_backward: updates a weight as soon as its gradient is final and no later step reads the weight. Updates are recorded at the
/// end and moved after fusion, which moves readers of weights to later places.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/adamw.hpp"
#include "../op/clip_norm.hpp"
#include "../op/clip_value.hpp"
#include "../op/copy.hpp"
#include "../op/fill.hpp"
#include "../op/global_norm.hpp"
#include "../op/sgd.hpp"
#include "differentiate.hpp"
#include "optimizer.hpp"

namespace isotope {

namespace plan_detail {

/// Returns which other option cannot be combined with an update within the backward pass, and what to do; empty if none.
constexpr message objection_within_backward(const training_options& o) {
  message m;
  if (o.optimizer == optimizer_kind::none) m << "an update within_backward needs an optimizer: set it to adamw or sgd";
  else if (o.optimizer == optimizer_kind::muon)
    m << "muon cannot update within_backward: set update to after_backward, or optimizer to adamw or sgd";
  else if (o.clip == clipping::global_norm)
    m << "an update within_backward cannot wait for the global norm: set clip to none, value or tensor_norm";
  else if (o.accumulate) m << "an update within_backward keeps no gradient for later micro-batches: set accumulate to false";
  return m;
}

/// Returns the gradient of one parameter as dense bytes that no other parameter's update touches. `taken`: by value, roots that already serve a
/// parameter.
constexpr std::int32_t own_gradient(tape& t, const parameter& p, std::vector<std::uint8_t>& taken) {
  trace& g = t.g;
  const shape dims = g.values[std::size_t(p.value)].dims;
  const auto root = g.root(p.grad);
  const value& r = g.values[std::size_t(root)];
  const bool whole = r.kind == value_kind::temp && r.dims.count() == dims.count() && g.dense(p.grad) && g.root_offset(p.grad) == 0 &&
                     r.type == accum_of(t.program());
  if (whole && taken[std::size_t(root)] == 0) {
    taken[std::size_t(root)] = 1;
    return root;
  }
  const auto copy = t.record(rules<op::copy>, {&p.grad, 1}, {}, place::current(), 0);
  g.nodes.back().phases = phase_last;
  return copy.out[0];
}

/// Identifies what accesses may conflict over: a tensor, or a part of a region of parameters, moments or norms.
constexpr std::int32_t tensor_of(const trace& g, std::int32_t v) {
  for (;;) {
    const auto base = g.values[std::size_t(v)].base;
    if (base < 0) return v;
    const value& b = g.values[std::size_t(base)];
    if (b.base < 0 && b.producer < 0 && b.kind != value_kind::input && b.kind != value_kind::packed && b.kind != value_kind::temp) return v;
    v = base;
  }
}

/// The last positions at which each tensor is accessed, and written.
class last_uses {
 public:
  constexpr explicit last_uses(const trace& g) : g_(g), touched_(g.values.size(), -1), written_(g.values.size(), -1) {}

  constexpr void note(const node& n, std::int32_t position) {
    for (int k = 0; k < n.inputs(); ++k) raise(touched_, n.in[std::size_t(k)], position);
    for (int k = 0; k < n.outputs(); ++k) {
      raise(touched_, n.out[std::size_t(k)], position);
      raise(written_, n.out[std::size_t(k)], position);
    }
  }
  /// Returns the position that n has to follow: the last writer of what it reads, the last user of what it writes.
  constexpr std::int32_t before(const node& n) const {
    std::int32_t position = -1;
    const auto take = [&](const std::vector<std::int32_t>& last, std::int32_t v) {
      const auto p = last[std::size_t(tensor_of(g_, v))];
      if (p > position) position = p;
    };
    for (int k = 0; k < n.inputs(); ++k) take(written_, n.in[std::size_t(k)]);
    for (int k = 0; k < n.outputs(); ++k) take(touched_, n.out[std::size_t(k)]);
    return position;
  }

 private:
  const trace& g_;
  std::vector<std::int32_t> touched_, written_;  // last access and last write, by tensor_of

  constexpr void raise(std::vector<std::int32_t>& last, std::int32_t v, std::int32_t position) {
    auto& p = last[std::size_t(tensor_of(g_, v))];
    if (p < position) p = position;
  }
};

/// Moves node i to position to[i].
constexpr void reorder(trace& g, const std::vector<std::int32_t>& to) {
  std::vector<node> moved(g.nodes.size(), node{});
  for (std::size_t i = 0; i < to.size(); ++i) moved[std::size_t(to[i])] = g.nodes[i];
  g.nodes = static_cast<std::vector<node>&&>(moved);
  for (auto& v : g.values)
    if (v.producer >= 0) v.producer = to[std::size_t(v.producer)];
}
}  // namespace plan_detail

/// Replaces append_optimizer: for each trained parameter it appends the nodes that make its gradient dense, clip it, take its norm and update the
/// weight. Returns the first of these nodes; hoist_updates moves them.
constexpr std::int32_t append_updates(tape& t, std::int32_t loss, const training_options& o) {
  using namespace plan_detail;
  if (!t.ok()) return 0;
  trace& g = t.g;
  g.error = objection_within_backward(o);
  if (!t.ok()) return 0;
  g.outputs.push_back({name("loss"), loss});
  prune(g);
  plan_detail::pack_weights(t, o);
  const auto order = gather_params(t);
  g.values[std::size_t(g.root(loss))].kind = value_kind::output;
  const auto first = std::int32_t(g.nodes.size());
  if (order.trained == 0) return first;

  const auto regions = add_update_regions(t, order, o.optimizer);
  std::vector<std::uint8_t> taken(g.values.size(), 0);
  std::vector<std::int32_t> grads(g.params.size(), -1);
  std::int64_t trained = 0;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    const parameter& p = g.params[i];
    if (p.trainable) ++trained;
    if (p.trainable && p.grad >= 0) grads[i] = own_gradient(t, p, taken);
  }
  const auto norms = g.add_value({trained}, accum_of(t.program()), value_kind::output);
  g.outputs.push_back({name("grad_norm"), norms});
  trained = 0;
  for (std::size_t i = 0; i < g.params.size(); ++i) {
    const parameter& p = g.params[i];
    if (!p.trainable) continue;
    const shape dims = g.values[std::size_t(p.value)].dims;
    const std::int64_t n = dims.count(), columns = p.packed < 0 ? 0 : dims[1];
    if (grads[i] < 0) {  // nothing reads the parameter: it only decays
      grads[i] = fill(t, {n}, accum_of(t.program())).id;
      g.nodes.back().phases = phase_last;
    }
    const auto weights = part_of(g, p.value, 0, {n}), gradient = part_of(g, grads[i], 0, {n});
    if (o.clip == clipping::value) clip_in_place(t, rules<op::clip_value>, gradient);
    if (o.clip == clipping::tensor_norm) clip_in_place(t, rules<op::clip_norm>, gradient);
    const auto norm = t.record(rules<op::global_norm>, {&gradient, 1}, {}, place::current(), 0).out[0];
    g.nodes.back().phases = phase_last;
    rebase(g, norm, norms, trained++);
    const std::int64_t at = order.offset[i], decaying = p.decay ? n : 0;
    record_update(t, regions, {weights, gradient, p.packed, columns, norm, loss, at, p.second, decaying, p.rate_scale}, o);
  }
  return first;
}

/// Moves each update appended from node `first` on, with its clipping and its norm, behind the last node that makes its gradient or reads the weight.
/// Runs on a fused trace.
constexpr void hoist_updates(tape& t, std::int32_t first) {
  using namespace plan_detail;
  if (!t.ok()) return;
  trace& g = t.g;
  const auto nodes = std::int32_t(g.nodes.size());
  last_uses uses(g);
  for (std::int32_t i = 0; i < first; ++i)
    if (const node& n = g.nodes[std::size_t(i)]; !n.dead && n.op->kind != op_kind::view) uses.note(n, i);

  std::vector<std::int32_t> follows(g.nodes.size(), -1);  // position of the node that an appended one must follow
  std::vector<std::int32_t> start(std::size_t(first) + 2, 0);
  for (std::int32_t i = first; i < nodes;) {
    std::int32_t end = i;  // nodes up to a copy or an update move together
    for (bool last = false; !last; ++end) {
      const op_info* op = g.nodes[std::size_t(end)].op;
      last = op == &info<op::copy> || op == &info<op::adamw> || op == &info<op::sgd>;
    }
    std::int32_t position = -1;
    for (std::int32_t k = i; k < end; ++k)
      if (const auto p = uses.before(g.nodes[std::size_t(k)]); p > position) position = p;
    for (; i < end; ++i) {
      uses.note(g.nodes[std::size_t(i)], position);
      follows[std::size_t(i)] = position;
      ++start[std::size_t(position + 2)];
    }
  }
  for (std::size_t k = 1; k < start.size(); ++k) start[k] += start[k - 1];  // number of appended nodes that go before main node k
  std::vector<std::int32_t> to(g.nodes.size(), 0);
  for (std::int32_t i = 0; i < first; ++i) to[std::size_t(i)] = i + start[std::size_t(i + 1)];
  for (std::int32_t i = first; i < nodes; ++i) {
    const auto f = follows[std::size_t(i)];
    to[std::size_t(i)] = f + 1 + start[std::size_t(f + 1)]++;
  }
  reorder(g, to);
}

}  // namespace isotope
