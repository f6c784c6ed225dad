#pragma once
/// Steps of a plan as text, for profiles.
#include <isotope/isotope.hpp>

#include <cstddef>
#include <string>

/// The op of step k with its fused ops, the shape of its result, and those of its first two inputs.
inline std::string step_text(const isotope::plan_view& plan, std::size_t k) {
  const isotope::step& s = plan.steps[k];
  std::string text(s.op->name);
  for (int m = 0; m < s.body_size; ++m) text += (m == 0 ? ": " : " ") + std::string(plan.micro_ops[std::size_t(s.body + m)].op->name);
  for (const int o : {int(s.inputs), 0, 1})
    if (o < s.inputs + s.outputs) {
      text += o == 0 ? " from" : "";
      const auto& d = plan.operands[std::size_t(s.operands + o)].dims;
      for (int a = 0; a < d.rank; ++a) text += (a == 0 ? " [" : ",") + std::to_string(d[a]);
      text += "]";
    }
  return text;
}
