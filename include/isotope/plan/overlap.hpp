#pragma once
/// The order of work around sums of a tensor group: what does not need a sum runs while the devices add up.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/all_reduce.hpp"
#include "../op/matmul.hpp"

namespace isotope::plan_detail {

/// Puts the nodes of a trace into the order `order`, a permutation of their indices.
constexpr void put_in_order(trace& g, const std::vector<std::int32_t>& order) {
  std::vector<node> nodes;
  nodes.reserve(order.size());
  std::vector<std::int32_t> now(order.size(), 0);
  for (const auto i : order) {
    now[std::size_t(i)] = std::int32_t(nodes.size());
    nodes.push_back(g.nodes[std::size_t(i)]);
  }
  g.nodes.swap(nodes);
  for (auto& v : g.values)
    if (v.producer >= 0) v.producer = now[std::size_t(v.producer)];
}

/// Begins every sum of a tensor group right behind the node that gives its last operand, and puts behind it what was recorded since the sum before and only later nodes
/// need. In the backward pass of a layer that is divided by columns, and of the one behind it that is divided by rows,
///
///   dh = dy W2^T,  dW2 = h^T dy,  dx = dh W1^T,  dW1 = x^T dh,  all_reduce(dx)    becomes    dh, dx, all_reduce(dx), dW2, dW1
///
/// so that both products of weight gradients run while dx is added up. Nodes that write into other values stay where they are. Values live longer for it, at most from one sum
/// to the next.
constexpr void overlap_sums(trace& g) {
  const std::size_t n = g.nodes.size();
  const auto sums = [&](const node& x) {
    return x.op == &info<op::all_reduce> && op::collective_constants::of(x.attr).which() == rank_group::tensor;
  };
  std::vector<std::int32_t> order;
  std::vector<std::uint8_t> needed(g.values.size(), 0), overwritten(g.values.size(), 0);  // by root
  order.reserve(n);
  std::size_t begin = 0;  // in `order`: the first node behind the sum before, and behind what was put there
  for (std::size_t i = 0; i < n; ++i) {
    const node& sum = g.nodes[i];
    if (!sums(sum) || sum.dead) {
      order.push_back(std::int32_t(i));
      continue;
    }
    // Backward from the sum: what it depends on keeps its place in front of it, and so does what writes in place.
    std::vector<std::int32_t> before, after;
    for (std::size_t v = 0; v < g.values.size(); ++v) needed[v] = overwritten[v] = 0;
    const auto reads = [&](const node& x, std::vector<std::uint8_t>& of) {
      for (int p = 0; p < x.inputs(); ++p) of[std::size_t(g.root(x.in[std::size_t(p)]))] = 1;
    };
    reads(sum, needed);
    reads(sum, overwritten);
    for (std::size_t k = order.size(); k-- > begin;) {
      const node& x = g.nodes[std::size_t(order[k])];
      bool stays = x.dead || x.effect || x.op->inout != 0 || x.op->collective;
      for (int o = 0; o < x.outputs(); ++o) {
        const auto y = x.out[std::size_t(o)];
        const bool writes = x.op->kind != op_kind::view && g.values[std::size_t(y)].base >= 0;
        stays = stays || writes || needed[std::size_t(g.root(y))] != 0;
        if (writes) overwritten[std::size_t(g.root(y))] = 1;
      }
      for (int p = 0; p < x.inputs() && !stays; ++p) stays = overwritten[std::size_t(g.root(x.in[std::size_t(p)]))] != 0;
      (stays ? before : after).push_back(order[k]);
      if (stays) reads(x, needed);
    }
    order.resize(begin);
    for (std::size_t k = before.size(); k-- > 0;) order.push_back(before[k]);
    order.push_back(std::int32_t(i));
    for (std::size_t k = after.size(); k-- > 0;) order.push_back(after[k]);
    begin = order.size();
  }
  put_in_order(g, order);
}

}  // namespace isotope::plan_detail
