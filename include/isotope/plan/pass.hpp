#pragma once
/// Which part of a training step a step of the plan belongs to.
#include <cstdint>
#include <string_view>
#include <vector>

#include "plan.hpp"

namespace isotope {

enum class pass : std::uint8_t { forward, backward, optimizer };

constexpr std::string_view name_of(pass p) {
  switch (p) {
    case pass::forward: return "forward";
    case pass::backward: return "backward";
    case pass::optimizer: return "optimizer";
  }
  return "";
}

/// Returns the pass of each step. The forward pass ends with the step that writes the loss; what runs only after the last micro-batch is the
/// optimizer. Recomputed blocks count as backward. A plan without an output `loss` is all forward.
inline std::vector<pass> passes_of(const plan_view& p) {
  const auto writes = [&](std::size_t i, const operand& o) {
    if (p.steps[i].op->collective) return false;  // the mean over all devices is not the loss of the forward pass
    for (int k = 0; k < p.steps[i].outputs; ++k) {
      const operand& x = p.operands[std::size_t(p.steps[i].operands + p.steps[i].inputs + k)];
      if (x.region == o.region && x.at == o.at) return true;
    }
    return false;
  };
  const auto last_writer = [&](std::size_t end, const operand& o) {
    for (std::size_t i = end; i-- > 0;)
      if (writes(i, o)) return i;
    return end;
  };
  std::size_t loss = p.steps.size();
  for (const auto& out : p.outputs)
    if (out.label.view() == "loss") loss = last_writer(p.steps.size(), out.where);
  // Micro-batches add up their losses at the end of the step; the loss itself is the added term.
  if (loss < p.steps.size() && p.steps[loss].accumulate != 0) loss = last_writer(loss, p.operands[std::size_t(p.steps[loss].operands + 1)]);
  std::vector<pass> passes(p.steps.size(), pass::forward);
  for (std::size_t i = 0; i < passes.size(); ++i)
    if (p.steps[i].phases == phase_last) passes[i] = pass::optimizer;
    else if (i > loss) passes[i] = pass::backward;
  return passes;
}

}  // namespace isotope
