#pragma once
/// What a plan became on a device: one line per dispatch, for people and for scripts.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../plan/report/fall_through.hpp"
#include "../../plan/report/to_text.hpp"
#include "launch.hpp"

namespace isotope::vulkan {

/// Why a dispatch runs in the set that it does; empty: it is the wanted one. What a kernel said on this device comes before what the planner
/// knew.
inline std::string_view reason_of(const dispatch& d, std::string_view wanted, std::string_view native_reason) {
  if (d.step < 0) return {};
  return d.reason.empty() ? reason_for(d.tier, wanted, native_reason) : d.reason;
}

/// The formats that a dispatch gives to matrix units; "-": it uses none.
inline std::string_view matrices_of(const dispatch& d) {
  return d.code->needs == "coopmat_bf16" ? "bf16xbf16->f32" : d.code->needs == "coopmat" ? "f16xf16->f32" : "-";
}

/// Columns: step of the plan (-: the copy of the outputs to the host), op, fused body, kernel set, why not the wanted one (-: it is), common
/// or -, shape and format of the step's first output, shader, workgroups, invocations of each, required subgroup size (-: any), bytes in the
/// ranges read and written, formats of operands and sums on matrix units (-: not used), oscillation of the weight (-: no score). Lines that start
/// with # hold totals; `host` counts the steps of the plan without a dispatch.
///
/// @param all     session::dispatches
/// @param wanted  the target's kernel set
/// @param native_reason  the backend's word on why it has no native kernel of an op
inline std::string dispatch_report(const plan_view& p, std::span<const dispatch> all, std::string_view wanted,
                                   std::string_view native_reason) {
  std::string r =
      "# step\top\tbody\tkernels\treason\tcommon\tshape\tformat\tshader\tgroups\tinvocations\tsubgroup\tbytes\tmatrices\toscillation\n";
  std::vector<std::pair<std::string_view, int>> counts;
  std::vector<bool> dispatched(p.steps.size());
  int common = 0;
  for (const auto& d : all) {
    const step* s = d.step < 0 ? nullptr : &p.steps[std::size_t(d.step)];
    if (s == nullptr) {
      r += "-\tcopy\t-\t-\t-\t-\t-\t-\t";
    } else {
      const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == d.tier; });
      known == counts.end() ? void(counts.push_back({d.tier, 1})) : void(++known->second);
      common += s->common ? 1 : 0;
      dispatched[std::size_t(d.step)] = true;
      const operand& o = p.operands[std::size_t(s->operands + s->inputs)];
      const auto reason = reason_of(d, wanted, native_reason);
      r += std::to_string(d.step) + '\t' + std::string(s->op->name) + '\t' + body_to_text(p, *s) + '\t' + std::string(d.tier) + '\t' +
           std::string(reason.empty() ? "-" : reason) + '\t' + (s->common ? "common" : "-") + '\t' + to_text(o.dims) + '\t' +
           std::string(name_of(o.type)) + '\t';
    }
    const auto& words = d.specialization.words();
    std::int64_t bytes = 0;
    for (const auto& x : d.reads) bytes += std::int64_t(x.end - x.first);
    for (const auto& x : d.writes) bytes += std::int64_t(x.end - x.first);
    r += std::string(d.code->name) + '\t' + std::to_string(d.count.x) + ',' + std::to_string(d.count.y) + ',' + std::to_string(d.count.z) +
         '\t' + (words.empty() ? "-" : std::to_string(words[0])) + '\t' + (d.subgroup == 0 ? "-" : std::to_string(d.subgroup)) + '\t' +
         std::to_string(bytes) + '\t' + std::string(matrices_of(d)) + '\t' + (d.oscillation < 0 ? "-" : std::to_string(d.oscillation)) +
         '\n';
  }
  r += "# launches";
  for (const auto& [set, n] : counts) r += '\t' + std::string(set) + ' ' + std::to_string(n);
  const auto host = std::count(dispatched.begin(), dispatched.end(), false);
  return r + "\tcommon " + std::to_string(common) + "\thost " + std::to_string(host) + '\n';
}

/// Dispatches that run on a lower kernel set than the target asks for.
inline std::vector<fall_through> fall_throughs(const plan_view& p, std::span<const dispatch> all, std::string_view wanted,
                                               std::string_view native_reason) {
  std::vector<fall_through> r;
  for (const auto& d : all)
    if (const auto reason = reason_of(d, wanted, native_reason); !reason.empty())
      add_launch(r, p.steps[std::size_t(d.step)].op->name, d.tier, reason);
  return r;
}

}  // namespace isotope::vulkan
