#pragma once
/// Inference programs of f32 that store weights in 16 bits: this halves their bytes; activations and sums stay f32.
#include <string_view>

#include "../core/tape.hpp"

namespace isotope {

/// Chooses the format that a weight is stored in: f32, f16 or bf16. It is asked for every parameter of two axes that only matmuls (as right operand)
/// and embeddings (as table) read. Session::write and initialize round to it; write refuses a number beyond f16.
using weight_storage = dtype (*)(std::string_view path, const shape& dims);

namespace weights {
constexpr dtype f16(std::string_view, const shape&) { return dtype::f16; }
constexpr dtype bf16(std::string_view, const shape&) { return dtype::bf16; }
}  // namespace weights

namespace plan_detail {

/// Whether every reader of a parameter accepts it in another format than that of its own result.
constexpr bool storable(const trace& g, std::int32_t param) {
  if (g.values[std::size_t(param)].dims.rank != 2) return false;
  for (const auto& n : g.nodes) {
    if (n.dead || n.op->kind == op_kind::view) continue;
    for (int k = 0; k < n.inputs(); ++k)
      if (g.root(n.in[std::size_t(k)]) == param && k != n.op->weight) return false;
  }
  return true;
}

/// The constants that the shape rule of n derives from the formats of its operands.
constexpr void infer_again(const trace& g, node& n) {
  shape_rule r(g, {n.in.data(), std::size_t(n.inputs())}, n.attr);
  n.op->infer(r);
  if (!r.failed()) n.attr = r.attr;
}

}  // namespace plan_detail

/// Retypes the weights that `choose` names, before they are gathered. Results keep the formats that they were traced with.
constexpr void store_weights(tape& t, weight_storage choose) {
  trace& g = t.g;
  if (choose == nullptr || !t.ok()) return;
  message m;
  if (g.program != dtype::f32)
    return t.fail(m << "weights of a " << name_of(g.program) << " program are stored in " << name_of(g.program)
                    << ": another format is for f32 programs",
                  place::current());
  for (const auto& p : g.params) {
    if (!plan_detail::storable(g, p.value)) continue;
    const dtype type = choose(p.path.view(), g.values[std::size_t(p.value)].dims);
    if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16)
      return t.fail(m << '\'' << p.path << "' cannot be stored in " << name_of(type) << ": choose f32, f16 or bf16", place::current());
    for (std::size_t v = 0; v < g.values.size(); ++v)
      if (g.root(std::int32_t(v)) == p.value) g.values[v].type = type;
    for (auto& n : g.nodes)
      if (!n.dead && n.op->weight >= 0 && g.root(n.in[std::size_t(n.op->weight)]) == p.value) plan_detail::infer_again(g, n);
  }
}

}  // namespace isotope
