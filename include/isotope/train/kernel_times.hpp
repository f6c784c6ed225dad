#pragma once
/// The time of one step by kernel: the launches of a step_trace, those of equal kernels added up.
#include <isotope/plan/pass.hpp>
#include <isotope/plan/report/to_text.hpp>
#include <isotope/train/step_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::train {

struct kernel_time {
  std::string_view part;   // forward, backward, optimizer, or copy: of the outputs to the host
  std::string op, kernel;  // kernel: the op with its fused ops, the shape of its result, the shader if there is one
  std::string set;         // of kernels
  std::int64_t times = 0;  // launches
  double usec = 0;         // of all of them
  std::int64_t bytes = 0;  // read and written by all of them
  std::optional<double> predicted_usec = {};
};

/// Returns the kernels in the order of their first launch.
/// @param predicted_usec  of each step of the plan; empty: nothing is predicted
inline std::vector<kernel_time> kernel_times_of(const step_trace& t, const plan_view& p, std::span<const double> predicted_usec = {}) {
  const auto parts = passes_of(p);
  std::vector<kernel_time> all;
  for (const timed_launch& l : t.launches) {
    kernel_time k{"copy", "copy", "copy of the outputs", l.set, 1, l.usec, l.bytes};
    if (l.step >= 0) {
      const auto i = std::size_t(l.step);
      const step& s = p.steps[i];
      k.part = name_of(parts[i]);
      k.op = s.op->name;
      k.kernel = step_to_text(p, i);
      if (i < predicted_usec.size()) k.predicted_usec = predicted_usec[i];
      if (s.outputs > 0) k.kernel += " " + to_text(p.operands[std::size_t(s.operands + s.inputs)].dims);
    }
    if (!l.code.empty()) k.kernel += " " + l.code;
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const kernel_time& x) { return x.part == k.part && x.kernel == k.kernel && x.set == k.set; });
    if (same == all.end()) {
      all.push_back(std::move(k));
      continue;
    }
    same->times += 1, same->usec += k.usec, same->bytes += k.bytes;
    if (k.predicted_usec) *same->predicted_usec += *k.predicted_usec;
  }
  return all;
}

}  // namespace isotope::train
