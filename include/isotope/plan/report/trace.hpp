#pragma once
/// Prints a trace as text, in trace order: what the model's source became before layout.
#include <string>

#include "to_text.hpp"

namespace isotope {

namespace plan_detail {

inline std::string number_of(std::int32_t v) { return "%" + std::to_string(v); }
inline std::string typed(const trace& g, std::int32_t v) {
  const value& x = g.values[std::size_t(v)];
  return number_of(v) + ' ' + to_text(x.dims) + ' ' + std::string(name_of(x.type));
}
/// Prints a body as one expression per instruction; operands are inputs %n, results of instructions $k, and the host's result *.
inline std::string expressions(const trace& g, const node& n) {
  std::string r;
  for (std::int32_t k = 0; k < n.body_size; ++k) {
    const micro_op& m = g.micro_ops[std::size_t(n.body + k)];
    r += (k == 0 ? "{ $" : "; $") + std::to_string(k) + " = " + std::string(m.op->name) + '(';
    for (std::size_t a = 0; a < m.arg.size() && m.arg[a] != -1; ++a) {
      const int arg = m.arg[a];
      r += (a == 0 ? "" : ", ") + (arg == gemm_result  ? "*"
                                   : arg >= max_inputs ? "$" + std::to_string(arg - max_inputs)
                                                       : number_of(n.in[std::size_t(arg)]));
    }
    r += ')';
    if (m.scalar != 0) r += " by " + std::to_string(m.scalar);
    if (m.store >= 0) r += " -> " + number_of(n.out[std::size_t(m.store)]);
  }
  return r.empty() ? r : r + " }";
}

}  // namespace plan_detail

/// Prints one line per parameter, input, node and output. A value is `%number shape format`; `view of` names the value whose bytes it views and the
/// first element. Unneeded nodes are left out.
inline std::string trace_text(const trace& g) {
  using namespace plan_detail;
  std::string r = "# program " + std::string(name_of(g.program)) + ", " + std::to_string(g.nodes.size()) + " nodes recorded\n";
  const auto owner = [&](std::int32_t v) {
    const value& x = g.values[std::size_t(v)];
    if (x.base < 0) return " in " + std::string(to_text(x.kind));
    return " view of " + number_of(g.root(v)) + " from " + std::to_string(g.root_offset(v)) + " in " +
           std::string(to_text(g.values[std::size_t(g.root(v))].kind));
  };
  for (const auto& i : g.inputs) r += "input " + typed(g, i.value) + ' ' + std::string(i.label.view()) + '\n';
  for (const auto& p : g.params) {
    r += "parameter " + typed(g, p.value) + ' ' + std::string(p.path.view()) + owner(p.value);
    r += std::string(p.trainable ? "" : ", frozen") + (p.decay ? "" : ", no decay") + '\n';
  }
  for (const auto& n : g.nodes) {
    if (n.dead) continue;
    for (int k = 0; k < n.outputs(); ++k) r += (k == 0 ? "" : ", ") + typed(g, n.out[std::size_t(k)]);
    r += " = " + std::string(n.op->name) + '(';
    for (int k = 0; k < n.inputs(); ++k) r += (k == 0 ? "" : ", ") + number_of(n.in[std::size_t(k)]);
    r += ')';
    if (n.body_size > 0) r += ' ' + expressions(g, n);
    for (int k = 0; k < n.outputs(); ++k) r += (k == 0 ? "" : ",") + owner(n.out[std::size_t(k)]);
    if (n.block >= 0) r += ", block " + std::to_string(n.block);
    if (n.phases != phase_always) r += ", phases " + std::string(phases_to_text(n.phases));
    if (n.accumulate != 0) r += ", accumulates";
    if (n.adds != 0) r += ", adds";
    if (n.summed >= 0) r += ", sums the columns of " + number_of(n.out[std::size_t(n.summed)]);
    if (n.decomposed) r += ", common";
    if (n.op->draws(n.attr)) r += ", stream " + std::to_string(n.ordinal);
    r += '\n';
  }
  for (const auto& o : g.outputs) r += "output " + typed(g, o.value) + ' ' + std::string(o.label.view()) + '\n';
  if (!g.error.empty()) r += "# error: " + std::string(g.error.view()) + '\n';
  return r;
}

}  // namespace isotope
