#pragma once
/// Keeps a second, pre-packed copy of each weight that matmuls of a training step read column-wise, as dy W does. The optimiser maintains the copy:
/// no step packs a weight.
#include "../core/tape.hpp"
#include "../op/adamw.hpp"
#include "../op/matmul.hpp"
#include "../op/muon.hpp"
#include "layout.hpp"
#include "options.hpp"

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

}  // namespace plan_detail

/// Gives products packed right operands where the target's kernel wants them and its optimiser keeps them. On a pruned trace, before parameters are
/// gathered.
constexpr void pack_weights(tape& t, optimizer_kind optimizer) {
  if (!t.ok()) return;
  trace& g = t.g;
  const auto keeps = [&](const op_info* op) {
    const auto kernel = find_kernel(t.kernels, op, t.program());
    return kernel >= 0 && t.kernels[std::size_t(kernel)].packs;
  };
  const auto product_kernel = find_kernel(t.kernels, &info<op::matmul>, t.program());
  if (product_kernel < 0 || !keeps(&info<op::adamw>) || (optimizer == optimizer_kind::muon && !keeps(&info<op::muon>))) return;
  const auto packed = t.kernels[std::size_t(product_kernel)].packed;
  if (packed == nullptr) return;
  for (auto& n : g.nodes) {
    if (n.dead || n.op != &info<op::matmul>) continue;
    parameter* p = plan_detail::whole_parameter(g, n.in[1]);
    if (p == nullptr) continue;
    const shape a = g.values[std::size_t(n.in[0])].dims, b = g.values[std::size_t(n.in[1])].dims, y = g.values[std::size_t(n.out[0])].dims;
    const dtype type = g.values[std::size_t(n.in[1])].type;
    if (type != t.program() || g.values[std::size_t(n.in[0])].type != type) continue;
    const shape in[2] = {a, b};
    const std::int64_t elements = packed({in, {&y, 1}, &n.attr});
    if (elements == 0) continue;
    if (p->packed < 0) p->packed = g.add_value({elements}, type, value_kind::packed);
    const auto copy = g.add_value(b, type, value_kind::packed);
    g.values[std::size_t(copy)].base = p->packed;
    n.in[1] = copy;
    n.attr.i[3] = 1;
  }
}

}  // namespace isotope
