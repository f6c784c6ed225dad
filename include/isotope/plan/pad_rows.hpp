#pragma once
/// Pads the rows of logits to a length that the backend's kernels like: rows of zeros behind the weight of the head, whose results are no classes.
#include <cstdint>
#include <vector>

#include "../core/tape.hpp"
#include "../op/view.hpp"

namespace isotope {

namespace plan_detail {

/// The length that rows of n elements get: a multiple, unless that costs more than a sixteenth.
constexpr std::int64_t padded_length(std::int64_t n, std::int64_t multiple) {
  const std::int64_t padded = (n + multiple - 1) / multiple * multiple;
  return padded - n <= n / 16 ? padded : n;
}

/// Returns the node that makes the logits of node i, if it is a gemm with a matrix and node i alone reads it; -1 if not. `result` is what the program
/// returns.
constexpr std::int32_t gemm_for(const trace& g, std::size_t i, std::int32_t result) {
  const std::int32_t logits = g.nodes[i].in[0];
  const value& y = g.values[std::size_t(logits)];
  if (logits == result || y.base >= 0 || y.producer < 0) return -1;
  const node& n = g.nodes[std::size_t(y.producer)];
  if (n.op->gemm_operands != 2 || n.inputs() != 2) return -1;
  const shape& b = g.values[std::size_t(n.in[1])].dims;
  if (b.rank != 2 || b.has_scalar()) return -1;
  for (std::size_t j = 0; j < g.nodes.size(); ++j)
    for (int k = 0; k < g.nodes[j].inputs(); ++k)
      if (g.nodes[j].in[std::size_t(k)] == logits && (j != i || k != 0)) return -1;
  return y.producer;
}

/// Moves the nodes from `first` on, which were recorded last, before node `to`.
constexpr void move_before(trace& g, std::size_t first, std::size_t to) {
  const std::size_t moved = g.nodes.size() - first;
  std::vector<node> nodes;
  nodes.reserve(g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) nodes.push_back(g.nodes[i < to ? i : i < to + moved ? first + i - to : i - moved]);
  g.nodes.swap(nodes);
  for (auto& v : g.values)
    if (v.producer >= std::int32_t(first)) v.producer -= std::int32_t(first - to);
    else if (v.producer >= std::int32_t(to)) v.producer += std::int32_t(moved);
}

/// Makes node i a gemm with a right operand (K, N) that zeros continue to (K, padded). They lie behind the last row if N is the outer axis in memory.
constexpr void pad_gemm(tape& t, std::size_t i, std::int64_t padded) {
  trace& g = t.g;
  const std::size_t first = g.nodes.size();
  const std::int32_t before = t.block;
  t.block = g.nodes[i].block;
  tensor<tape> b{&t, g.nodes[i].in[1]};
  const bool outer = g.values[std::size_t(b.id)].strides[0] == 1;
  b = outer ? transpose(pad(transpose(b), 0, 0, padded)) : pad(b, 1, 0, padded);
  t.block = before;
  if (!t.ok()) return;
  g.nodes[i].in[1] = b.id;
  value& y = g.values[std::size_t(g.nodes[i].out[0])];
  y.dims.set(-1, padded);
  y.strides = dense_strides(y.dims);
  if (y.late >= 0) g.late[std::size_t(y.late)] = late_dense(y.dims);
  move_before(g, first, i);
}

}  // namespace plan_detail

/// Pads each gemm whose rows an op alone reads that counts the columns it needs (op_info::counts_columns), on a forward trace. What the ops give
/// stays the same, and so do the parameters' shapes: the gradient of the padding is cut off. Does nothing where `multiple` is 1.
///
/// @param multiple  row_multiple of the backend
/// @param result    what the program returns, which keeps its shape
constexpr void pad_rows(tape& t, std::int64_t multiple, std::int32_t result) {
  if (multiple <= 1) return;
  for (std::size_t i = 0; i < t.g.nodes.size() && t.ok(); ++i) {
    if (!t.g.nodes[i].op->counts_columns) continue;
    const std::int32_t made_by = plan_detail::gemm_for(t.g, i, result);
    if (made_by < 0) continue;
    const std::int64_t columns = t.describe(t.g.nodes[i].in[0]).dims[-1], padded = plan_detail::padded_length(columns, multiple);
    if (padded == columns) continue;
    const std::size_t nodes = t.g.nodes.size();
    plan_detail::pad_gemm(t, std::size_t(made_by), padded);
    i += t.g.nodes.size() - nodes;
  }
}

}  // namespace isotope
