#pragma once
/// Puts gradients into one contiguous region, where they are summed over micro-batches and clipped.
#include <cstdint>

#include "../op/accumulate.hpp"
#include "../op/clip_norm.hpp"
#include "../op/clip_value.hpp"
#include "../op/copy.hpp"
#include "parameters.hpp"

namespace isotope {

namespace plan_detail {

constexpr int readers(const trace& g, std::int32_t root) {
  int n = 0;
  for (const auto& node : g.nodes)
    if (!node.dead)
      for (int k = 0; k < node.inputs(); ++k) n += g.root(node.in[std::size_t(k)]) == root && node.op->kind != op_kind::view;
  return n;
}

/// Puts the gradient of one parameter into its slot of the gradient region: directly from the op that makes it where possible.
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
    const bool zeros = producer.op->constant && producer.attr.scalar() == 0;
    int inplace = 0;  // a chain of in-place additions reads its own bytes
    for (const auto& n : g.nodes) inplace += !n.dead && n.op->inout == 1 && n.in[0] >= 0 && g.root(n.in[0]) == root;
    int owners = 0;  // a tensor may be the gradient of several parameters: in-place sums would be added to each of them again
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
    const auto out = t.record(rules<op::accumulate>, in, {}, place::current(), 0);
    if (out.out[0] >= 0) {
      g.nodes.back().accumulate = 1;
      g.nodes.back().effect = true;
    }
  } else {
    const auto out = t.record(rules<op::copy>, {&p.grad, 1}, {}, place::current(), 0);
    if (out.out[0] >= 0) {
      rebase(g, out.out[0], region, offset);
      g.nodes.back().effect = true;
    }
  }
}

/// Clips a flat gradient in place, in the last phase.
constexpr void clip_in_place(tape& t, const op_rules& op, std::int32_t grad) {
  t.record(op, {&grad, 1}, {}, place::current(), 0);
  t.g.nodes.back().phases = phase_last;
  t.g.nodes.back().effect = true;
}
/// Clips by value or by each tensor's norm, in place in the gradient region.
constexpr void clip_each(tape& t, const param_order& order, std::int32_t grads, clipping how) {
  if (how == clipping::value) clip_in_place(t, rules<op::clip_value>, grads);
  if (how == clipping::tensor_norm)
    for (auto i : order.order)
      if (const auto& p = t.g.params[std::size_t(i)]; p.trainable)
        clip_in_place(t, rules<op::clip_norm>,
                      part_of(t.g, grads, order.offset[std::size_t(i)], {t.g.values[std::size_t(p.value)].dims.count()}));
}

}  // namespace plan_detail

}  // namespace isotope
