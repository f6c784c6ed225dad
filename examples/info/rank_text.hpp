#pragma once
/// What isotope-info rank prints.
#include "../support/exit_code.hpp"
#include "step_size.hpp"

#include <isotope/calibrate/rank.hpp>
#include <isotope/config/table.hpp>
#include <isotope/selected.hpp>

#include <every_backend.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace info_program {

namespace detail {

/// Which backends this build lacks, and which of those other builds have ranked; empty: it lacks none.
inline std::string lacks_text(const std::vector<isotope::rank_candidate>& all) {
  std::string lacked, ranked, missing, first;
  const auto add = [](std::string& to, std::string_view name) { to += (to.empty() ? "" : ", ") + std::string(name); };
  for (const std::string_view name : every_backend) {
    if (name == isotope::selected_backend::name) continue;
    add(lacked, name);
    const bool there = std::any_of(all.begin(), all.end(), [&](const isotope::rank_candidate& c) { return c.backend == name; });
    add(there ? ranked : missing, name);
    if (!there && first.empty()) first = name;
  }
  if (lacked.empty()) return {};
  std::string r = "\nthis build lacks " + lacked;
  if (!ranked.empty()) r += "; other builds have ranked here: " + ranked;
  if (!missing.empty())
    r += "; to add " + missing + ", configure a build with -DBACKEND=" + first + ", and give its isotope-info rank the same words";
  return r + "\n";
}

inline std::string order_text(const isotope::ranking& r, const step_size& step) {
  std::vector<std::vector<std::string>> rows = {
      {"", "backend", "device", "format", "ms a step", "tokens/s", "bound by", "planned MiB", "free MiB", "greatest batch"}};
  for (const isotope::rank_candidate& c : r.order) {
    char ms[32], rate[32], planned[32];
    std::snprintf(ms, sizeof ms, "%.3f", 1e3 * c.estimate.seconds());
    std::snprintf(rate, sizeof rate, "%.0f", double(step.batch) * step.length / c.estimate.seconds());
    std::snprintf(planned, sizeof planned, "%.1f", double(c.planned_bytes) / (1 << 20));
    const auto known = [&](std::int64_t n) { return c.device_bytes > 0 ? std::to_string(n) : "unknown"; };
    rows.push_back({std::to_string(rows.size()), support::one_line(c.backend), support::one_line(c.device), support::one_line(c.format), ms,
                    rate, std::string(name_of(c.estimate.limit())), planned, known(c.device_bytes >> 20), known(c.greatest_batch)});
  }
  return isotope::config::columns(rows);
}

}  // namespace detail

}  // namespace info_program
