#pragma once
/// Which element-wise ops were fused, and what kept the others apart, in the words of the fusion pass itself.
#include <string>

#include "../fuse.hpp"
#include "to_text.hpp"

namespace isotope {

/// Columns: step of the plan, body, what it was fused into (-: a step of its own), then for steps of their own one line per operand that
/// another step computed: step that computes it, its op, why it did not join. The first line counts ops and steps.
///
/// @param g          a trace as plan/dynamic.hpp makes it: fused
/// @param epilogues  what the target's gemms take
inline std::string fusion_report(trace g, const epilogue_rule& epilogues) {
  std::vector<std::int64_t> step_of(g.nodes.size(), -1);
  std::int64_t steps = 0, ops = 0, alone = 0, hosted = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node& n = g.nodes[i];
    if (n.dead || n.op->kind == op_kind::view) continue;
    step_of[i] = steps++;
    ops += n.body_size;
    (n.op->body == body_role::alone ? alone : hosted) += n.body_size > 0 ? 1 : 0;
  }
  std::string r = "# " + std::to_string(ops) + " element-wise ops: " + std::to_string(hosted) + " bodies fused into products, " +
                  std::to_string(alone) + " steps of their own\n# step\tbody\tinto\toperand of step\top\twhy not fused\n";
  plan_detail::fusion pass(g, epilogues);
  pass.find_readers();
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node& n = g.nodes[i];
    if (step_of[i] < 0 || n.body_size == 0) continue;
    const bool own = pass.is_body(i);
    const std::string head = std::to_string(step_of[i]) + '\t' + body_to_text(g.micro_ops, n.body, n.body_size) + '\t';
    std::string lines;
    for (int k = 0; own && k < n.inputs(); ++k) {
      const std::int32_t producer = g.values[std::size_t(g.root(n.in[std::size_t(k)]))].producer;
      if (producer < 0 || step_of[std::size_t(producer)] < 0) continue;
      const node& from = g.nodes[std::size_t(producer)];
      const std::string producing = from.body_size > 0 && from.op->body == body_role::alone
                                        ? body_to_text(g.micro_ops, from.body, from.body_size)
                                        : std::string(from.op->name);
      lines += head + "-\t" + std::to_string(step_of[std::size_t(producer)]) + '\t' + producing + '\t' +
               std::string(text_of(pass.why(i, n.in[std::size_t(k)]))) + '\n';
    }
    r += !lines.empty() ? lines : head + (own ? "-\t-\t-\treads parameters and inputs alone\n" : std::string(n.op->name) + "\t-\t-\t-\n");
  }
  return r;
}

}  // namespace isotope
