#pragma once
/// Data parallelism and ZeRO-1: the collectives of gradients and parameters, and the norm of gradients that several devices hold.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/add.hpp"
#include "../op/all_gather.hpp"
#include "../op/all_reduce.hpp"
#include "../op/global_norm.hpp"
#include "../op/reduce_scatter.hpp"
#include "../op/scale.hpp"
#include "../op/sqrt.hpp"
#include "../op/square.hpp"
#include "parameters.hpp"

namespace isotope {

namespace plan_detail {

/// Records a collective in place on elements of a region, in the last phase.
constexpr std::int32_t exchange(tape& t, const op_rules& op, std::int32_t x, rank_group group) {
  const auto y = t.record(op, {&x, 1}, op::collective_constants::of(group, t.g.mesh), place::current(), 0).out[0];
  if (!t.ok()) return x;
  t.g.nodes.back().phases = phase_last;
  t.g.nodes.back().effect = true;
  return y;
}
/// The piece of a bucket that belongs to a data index, in a region with the offsets of parameters.
constexpr std::int32_t piece_of(trace& g, std::int32_t region, const gradient_bucket& b) {
  const std::int64_t each = b.elements / g.mesh.data;
  const auto v = part_of(g, region, b.first, {each});
  g.values[std::size_t(v)].rank_stride = each;
  return v;
}

/// Moves the nodes from `first` on, which were recorded last: node first + k goes behind node after[k].
constexpr void move_behind(trace& g, std::size_t first, const std::vector<std::int32_t>& after) {
  std::vector<node> nodes;
  nodes.reserve(g.nodes.size());
  std::vector<std::int32_t> now(g.nodes.size(), 0), next(after.size(), -1),
      newest(first, -1);  // newest: the first one that goes behind a node
  for (std::size_t k = after.size(); k-- > 0;) {
    next[k] = newest[std::size_t(after[k])];
    newest[std::size_t(after[k])] = std::int32_t(k);
  }
  const auto put = [&](std::size_t i) {
    now[i] = std::int32_t(nodes.size());
    nodes.push_back(g.nodes[i]);
  };
  for (std::size_t i = 0; i < first; ++i) {
    put(i);
    for (auto k = newest[i]; k >= 0; k = next[std::size_t(k)]) put(first + std::size_t(k));
  }
  g.nodes.swap(nodes);
  for (auto& v : g.values)
    if (v.producer >= 0) v.producer = now[std::size_t(v.producer)];
}

/// Adds up the gradients of each bucket over the data group, right after the last node that writes to it: devices that run collectives beside other work then do so
/// during the backward pass. With ZeRO-1 each data index gets the sum of its piece alone.
/// Source: Li et al. 2020, arXiv:2006.15704, section 3.2 (buckets); Rajbhandari et al. 2020, arXiv:1910.02054 (ZeRO).
constexpr void reduce_gradients(tape& t, const param_order& order, std::int32_t grads) {
  trace& g = t.g;
  if (g.mesh.data == 1 || !t.ok()) return;
  std::vector<std::int32_t> after(order.buckets.size(), 0);
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node& n = g.nodes[i];
    if (n.dead || n.op->kind == op_kind::view) continue;
    for (int k = 0; k < n.outputs(); ++k) {
      const auto y = n.out[std::size_t(k)];
      if (g.root(y) != grads) continue;
      const std::int64_t at = g.root_offset(y);
      std::size_t low = 0, high = order.buckets.size();  // the bucket that begins at or before `at`
      while (high - low > 1) (order.buckets[(low + high) / 2].first <= at ? low : high) = (low + high) / 2;
      after[low] = std::int32_t(i);
    }
  }
  const std::size_t first = g.nodes.size();
  for (const auto& b : order.buckets)
    exchange(t, g.shards_updates ? rules<op::reduce_scatter> : rules<op::all_reduce>, part_of(g, grads, b.first, {b.elements}),
             rank_group::data);
  if (t.ok()) move_behind(g, first, after);
}

/// The norm of the gradients of all devices. Each device adds up the squares of the piece of each bucket that belongs to its data index; the sums of parameters that a
/// tensor group divides are added over that group, those of other parameters count once, and all are added over the data group. With ZeRO-1 or without, it has the
/// same bits.
constexpr std::int32_t norm_of_all(tape& t, const param_order& order, std::int32_t grads) {
  const std::size_t first = t.g.nodes.size();
  tensor<tape> sums[2];  // of parameters that are whole, and of divided ones
  for (const auto& b : order.buckets) {
    const auto piece = piece_of(t.g, grads, b);
    const auto squares = square(tensor<tape>{&t, t.record(rules<op::global_norm>, {&piece, 1}, {}, place::current(), 0).out[0]});
    auto& sum = sums[b.divided ? 1 : 0];
    sum = sum.valid() ? add(sum, squares) : squares;
  }
  if (!t.ok()) return -1;
  if (sums[1].valid()) sums[1] = {&t, exchange(t, rules<op::all_reduce>, sums[1].id, rank_group::tensor)};
  auto all = !sums[1].valid() ? sums[0] : sums[0].valid() ? add(sums[0], sums[1]) : sums[1];
  if (t.g.mesh.data > 1) all = {&t, exchange(t, rules<op::all_reduce>, all.id, rank_group::data)};
  const auto norm = sqrt(all);
  for (std::size_t i = first; i < t.g.nodes.size(); ++i) t.g.nodes[i].phases = phase_last;
  return norm.id;
}

}  // namespace plan_detail

}  // namespace isotope
