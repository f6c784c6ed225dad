#pragma once
/// Keeps a second, pre-packed copy of each weight that matmuls of a training step read column-wise, as dy W does. The optimiser maintains the copy:
/// no step packs a weight. Inference programs may keep such copies of the weights whose transposes their matmuls read; they are made when a weight is stored.
#include "../core/tape.hpp"
#include "layout.hpp"

namespace isotope {

namespace plan_detail {

/// Returns the parameter that operand v is, in memory order; null if v is something else.
constexpr parameter* whole_parameter(trace& g, std::int32_t v) {
  const value& x = g.values[std::size_t(v)];
  const auto root = g.root(v);
  if (x.dims.rank != 2 || x.dims != g.values[std::size_t(root)].dims || !g.dense(v) || g.root_offset(v) != 0) return nullptr;
  for (auto& p : g.params)
    if (p.value == root) return &p;
  return nullptr;
}

/// Returns the parameter (N, K) whose transpose (K, N) operand v is, in memory order; null if v is something else.
constexpr parameter* whole_transposed_parameter(trace& g, std::int32_t v) {
  const value& x = g.values[std::size_t(v)];
  const auto root = g.root(v);
  const shape& w = g.values[std::size_t(root)].dims;
  if (x.dims.rank != 2 || w.rank != 2 || x.dims[0] != w[1] || x.dims[1] != w[0] || g.root_offset(v) != 0) return nullptr;
  if (x.strides[0] != 1 || x.strides[1] != w[1]) return nullptr;
  for (auto& p : g.params)
    if (p.value == root) return &p;
  return nullptr;
}
/// Makes operand w of n a packed copy of parameter p, which has so many elements of a format.
constexpr void read_packed(trace& g, node& n, std::size_t w, parameter& p, dtype type, std::int64_t elements) {
  const shape b = g.values[std::size_t(n.in[w])].dims;
  if (p.packed < 0) p.packed = g.add_value({elements}, type, value_kind::packed);
  const auto copy = g.add_value(b, type, value_kind::packed);
  g.values[std::size_t(copy)].base = p.packed;
  n.in[w] = copy;
  n.rules->pack(n.attr);
}

}  // namespace plan_detail

/// Gives matmuls of an inference program packed copies of the weights whose transposes they read, where the target's kernel wants them: a second copy of these
/// weights in memory, in the program's format, also of weights in blocks if the kernel packs them, or if it rounds activations (a8). Runs on a pruned trace, before parameters are gathered.
constexpr void pack_transposed_weights(tape& t) {
  if (!t.ok()) return;
  trace& g = t.g;
  for (auto& n : g.nodes) {
    if (n.dead || n.rules->pack == nullptr) continue;
    const auto kernel = find_kernel(t.kernels, n.op, t.program());
    if (kernel < 0 || t.kernels[std::size_t(kernel)].packed_transposed == nullptr) continue;
    const auto w = std::size_t(n.op->weight);
    parameter* p = plan_detail::whole_transposed_parameter(g, n.in[w]);
    if (p == nullptr || (p->packed >= 0 && !p->packed_transposed)) continue;
    const dtype type = g.values[std::size_t(n.in[w])].type;
    const bool rounded = n.op->is_a8 != nullptr && n.op->is_a8(n.attr);
    const bool fits = type == t.program() || (in_blocks(type) && (rounded || t.kernels[std::size_t(kernel)].packs_blocks));
    if (!fits || g.values[std::size_t(n.in[0])].type != t.program()) continue;
    const shape in[2] = {g.values[std::size_t(n.in[0])].dims, g.values[std::size_t(n.in[w])].dims};
    const shape y = g.values[std::size_t(n.out[0])].dims;
    const std::int64_t elements = t.kernels[std::size_t(kernel)].packed_transposed({in, {&y, 1}, &n.attr});
    if (elements == 0) continue;
    p->packed_transposed = true;
    plan_detail::read_packed(g, n, w, *p, t.program(), elements);
  }
}

/// Gives matmuls pre-packed right operands where the target's kernel wants them and its optimiser maintains them. Runs on a pruned trace, before
/// parameters are gathered.
constexpr void pack_weights(tape& t, std::initializer_list<const op_info*> updates) {
  if (!t.ok()) return;
  trace& g = t.g;
  for (const op_info* op : updates)
    if (const auto kernel = find_kernel(t.kernels, op, t.program()); kernel < 0 || !t.kernels[std::size_t(kernel)].packs) return;
  for (auto& n : g.nodes) {
    if (n.dead || n.rules->pack == nullptr) continue;
    const auto kernel = find_kernel(t.kernels, n.op, t.program());
    if (kernel < 0 || t.kernels[std::size_t(kernel)].packed == nullptr) continue;
    const auto w = std::size_t(n.op->weight);
    parameter* p = plan_detail::whole_parameter(g, n.in[w]);
    if (p == nullptr) continue;
    const shape y = g.values[std::size_t(n.out[0])].dims;
    const dtype type = g.values[std::size_t(n.in[w])].type;
    if (type != t.program() || g.values[std::size_t(n.in[0])].type != type) continue;
    const shape in[2] = {g.values[std::size_t(n.in[0])].dims, g.values[std::size_t(n.in[1])].dims};
    const std::int64_t elements = t.kernels[std::size_t(kernel)].packed({in, {&y, 1}, &n.attr});
    if (elements == 0) continue;
    plan_detail::read_packed(g, n, w, *p, type, elements);
  }
}

}  // namespace isotope
