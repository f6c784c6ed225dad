#pragma once
/// What a plan became on a device, as text: one tab-separated line per launch, for people and for scripts.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../flops.hpp"
#include "fall_through.hpp"
#include "launch_row.hpp"
#include "to_text.hpp"

namespace isotope {

/// How well a plan shares memory, in bytes of temporaries.
struct sharing {
  std::int64_t unshared = 0;     // each result in bytes of its own
  std::int64_t planned = 0;      // the temporary region
  std::int64_t lower_bound = 0;  // alive at once
  std::int64_t saved() const { return unshared - planned; }
};
inline sharing sharing_of(const plan_view& p) {
  sharing r{0, p.totals.region[std::size_t(value_kind::temp)], p.totals.lower_bound};
  for (const auto& s : p.steps)
    for (int k = 0; k < s.outputs; ++k)
      if (const auto& o = p.operands[std::size_t(s.operands + s.inputs + k)]; o.region == value_kind::temp) r.unshared += o.bytes;
  return r;
}

/// The last lines of a report: temporaries, floating-point operations and the arena.
inline std::string totals_to_text(const plan_view& p) {
  const auto m = sharing_of(p);
  return "# temporaries\tunshared " + std::to_string(m.unshared) + "\tplanned " + std::to_string(m.planned) + "\tlower bound " +
         std::to_string(m.lower_bound) + "\tsaved " + std::to_string(m.saved()) + "\n# flops\t" + std::to_string(flops_of(p)) +
         "\n# arena\t" + std::to_string(p.totals.bytes) + "\tparameters " + std::to_string(p.totals.parameters) + '\n';
}

/// The variants among which kernels were chosen, a line each: `# variant`, the steps of the plan, the name, the predicted microseconds (-: it does not fit), and
/// `chosen`, the condition that rules it out, or - where it takes longer. Steps that were given the same ones share lines.
inline std::string variants_to_text(std::span<const launch_row> all) {
  std::string r;
  for (auto l = all.begin(); l != all.end(); ++l) {
    const auto same = [&](const launch_row& o) { return o.considered == l->considered; };
    if (l->considered.empty() || std::any_of(all.begin(), l, same)) continue;
    std::string steps;
    for (auto o = l; o != all.end(); ++o)
      if (same(*o)) steps += (steps.empty() ? "" : ",") + std::to_string(o->step);
    for (const considered_variant& v : l->considered) {
      const std::string time = v.unfit.empty() ? std::to_string(1e6 * v.seconds) : "-";
      const std::string_view said = v.chosen ? "chosen" : v.unfit.empty() ? "-" : v.unfit;
      r += "# variant\t" + steps + '\t' + v.name + '\t' + time + '\t' + std::string(said) + '\n';
    }
  }
  return r;
}

/// Columns: step of the plan (-: the copy of the outputs to the host), op, fused body, kernel set, why not the wanted one (-: it is), common or -,
/// shape and format of the first output, its region, offset and bytes, scratch bytes, floating-point operations (flops_of); shader, workgroups,
/// invocations of each, required subgroup size (-: any), bytes in the ranges read and written, formats of operands and sums on matrix units (-: not used),
/// oscillation of the weight (-: no score). Lines that start with # hold totals; `a8` counts products whose activations are rounded to
/// 8 bits, `host` the steps of the plan that no launch does.
///
/// @param wanted         the target's kernel set
/// @param native_reason  the backend's word on why it has no native kernel of an op
inline std::string dispatch_report(const plan_view& p, std::span<const launch_row> all, std::string_view wanted,
                                   std::string_view native_reason) {
  std::string r =
      "# step\top\tbody\tkernels\treason\tcommon\tshape\tformat\tregion\toffset\tbytes\tscratch\tflops\tshader\tgroups\tinvocations\t"
      "subgroup\ttouched\tmatrices\toscillation\n";
  const auto cell = [&r](std::string_view text) { r += std::string(text.empty() ? "-" : text) + '\t'; };
  const auto number = [&](std::int64_t n) { cell(std::to_string(n)); };
  std::vector<std::pair<std::string_view, int>> counts;
  std::vector<bool> launched(p.steps.size());
  int decomposed = 0, a8 = 0;
  for (const launch_row& l : all) {
    if (l.step < 0) {
      r += "-\tcopy";
      for (int k = 0; k < 11; ++k) r += "\t-";
      r += '\t';
    } else {
      const step& s = p.steps[std::size_t(l.step)];
      const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == l.set; });
      known == counts.end() ? void(counts.push_back({l.set, 1})) : void(++known->second);
      decomposed += s.decomposed ? 1 : 0;
      a8 += s.op->is_a8 != nullptr && s.op->is_a8(s.attr) ? 1 : 0;
      launched[std::size_t(l.step)] = true;
      if (l.joined >= 0) launched[std::size_t(l.joined)] = true;
      for (const std::int32_t k : l.also) launched[std::size_t(k)] = true;
      const operand& o = p.operands[std::size_t(s.operands + s.inputs)];
      number(l.step), cell(s.op->name), cell(body_to_text(p, s)), cell(l.set), cell(reason_of(l, wanted, native_reason));
      cell(s.decomposed ? "common" : "-"), cell(to_text(o.dims)), cell(name_of(o.type));
      cell(to_text(o.region)), number(o.at), number(o.bytes), number(s.scratch_bytes), number(flops_of(p, s));
    }
    const auto [x, y, z] = l.groups;
    cell(l.code), cell(x == 0 ? "" : std::to_string(x) + ',' + std::to_string(y) + ',' + std::to_string(z));
    cell(l.invocations == 0 ? "" : std::to_string(l.invocations)), cell(l.subgroup == 0 ? "" : std::to_string(l.subgroup));
    number(l.bytes), cell(l.matrices), cell(l.oscillation < 0 ? "" : std::to_string(l.oscillation));
    r.back() = '\n';
  }
  r += "# launches";
  for (const auto& [set, n] : counts) r += '\t' + std::string(set) + ' ' + std::to_string(n);
  const auto host = std::count(launched.begin(), launched.end(), false);
  if (a8 > 0) r += "\ta8 " + std::to_string(a8);
  return r + "\tcommon " + std::to_string(decomposed) + "\thost " + std::to_string(host) + '\n' + variants_to_text(all) + totals_to_text(p);
}

}  // namespace isotope
