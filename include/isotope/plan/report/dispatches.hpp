#pragma once
/// Prints a plan as text: one tab-separated line per step, for people and for scripts.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "../flops.hpp"
#include "fall_through.hpp"
#include "to_text.hpp"

namespace isotope {

/// How well a plan shares memory, in bytes of temporaries.
struct sharing {
  std::int64_t unshared = 0;     // if each result had its own bytes
  std::int64_t planned = 0;      // the temporary region
  std::int64_t lower_bound = 0;  // most bytes alive at once
  std::int64_t saved() const { return unshared - planned; }
};
inline sharing sharing_of(const plan_view& p) {
  sharing r{0, p.totals.region[std::size_t(value_kind::temp)], p.totals.lower_bound};
  for (const auto& s : p.steps)
    for (int k = 0; k < s.outputs; ++k)
      if (const auto& o = p.operands[std::size_t(s.operands + s.inputs + k)]; o.region == value_kind::temp) r.unshared += o.bytes;
  return r;
}

/// Columns: step, op, fused body, kernel set, why not the wanted one (-: it is), common or -, shape and format of the first output, its region,
/// offset and bytes, scratch bytes, floating-point operations (flops_of). Lines that start with # hold totals; `host` counts the steps that no kernel
/// of the target runs. `table` is the target's, `wanted` its kernel set, `reason` the backend's reason for having no native kernel.
inline std::string dispatch_report(const plan_view& p, std::span<const kernel_info> table, std::string_view wanted,
                                   std::string_view reason) {
  std::string r = "# step\top\tbody\tkernels\treason\tcommon\tshape\tformat\tregion\toffset\tbytes\tscratch\tflops\n";
  std::vector<std::pair<std::string_view, int>> counts;
  int common = 0, host = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& s = p.steps[i];
    const auto& o = p.operands[std::size_t(s.operands + s.inputs)];
    const std::string_view set = s.kernel < 0 ? "none" : table[std::size_t(s.kernel)].set;
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == set; });
    known == counts.end() ? void(counts.push_back({set, 1})) : void(++known->second);
    common += s.common ? 1 : 0;
    host += s.kernel < 0 ? 1 : 0;
    r += std::to_string(i) + '\t' + std::string(s.op->name) + '\t' + body_to_text(p, s) + '\t' + std::string(set) + '\t';
    const std::string_view why = reason_for(set, wanted, reason);
    r += std::string(why.empty() ? "-" : why) + '\t' + (s.common ? "common" : "-") + '\t' + to_text(o.dims) + '\t';
    r +=
        std::string(name_of(o.type)) + '\t' + std::string(to_text(o.region)) + '\t' + std::to_string(o.at) + '\t' + std::to_string(o.bytes);
    r += '\t' + std::to_string(s.scratch_bytes) + '\t' + std::to_string(flops_of(p, s)) + '\n';
  }
  r += "# launches";
  for (const auto& [set, n] : counts) r += '\t' + std::string(set) + ' ' + std::to_string(n);
  r += "\tcommon " + std::to_string(common) + "\thost " + std::to_string(host) + '\n';
  const auto m = sharing_of(p);
  r += "# temporaries\tunshared " + std::to_string(m.unshared) + "\tplanned " + std::to_string(m.planned) + "\tlower bound " +
       std::to_string(m.lower_bound) + "\tsaved " + std::to_string(m.saved()) + '\n';
  r += "# flops\t" + std::to_string(flops_of(p)) + '\n';
  return r + "# arena\t" + std::to_string(p.totals.bytes) + "\tparameters " + std::to_string(p.totals.parameters) + '\n';
}

}  // namespace isotope
