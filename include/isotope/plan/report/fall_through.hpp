#pragma once
/// Lists which steps run on a lower kernel set than the target asks for, and why.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../plan.hpp"

namespace isotope {

/// Launches of one op that fell through for one reason.
struct fall_through {
  std::string_view op, set;  // set: the one that runs
  std::string reason;
  std::int64_t launches = 0;
};

/// Returns the planner's reason for a kernel set other than the wanted one; empty if it is the wanted one. `native_reason` is the backend's reason
/// for having no native kernel of an op.
inline std::string_view reason_for(std::string_view set, std::string_view wanted, std::string_view native_reason) {
  if (set == wanted) return {};
  return set == "reference" ? "no portable kernel" : native_reason;
}

/// Counts launches of equal op, set and reason, in order of appearance.
inline void add_launch(std::vector<fall_through>& all, std::string_view op, std::string_view set, std::string_view reason) {
  for (auto& f : all)
    if (f.op == op && f.set == set && f.reason == reason) return void(++f.launches);
  all.push_back({op, set, std::string(reason), 1});
}

/// Returns the fall-throughs of a plan whose kernels the planner alone chooses.
inline std::vector<fall_through> fall_throughs(const plan_view& p, std::span<const kernel_info> table, std::string_view wanted,
                                               std::string_view native_reason) {
  std::vector<fall_through> r;
  for (const auto& s : p.steps) {
    const std::string_view set = s.kernel < 0 ? "none" : table[std::size_t(s.kernel)].set;
    if (const auto reason = reason_for(set, wanted, native_reason); !reason.empty()) add_launch(r, s.op->name, set, reason);
  }
  return r;
}

}  // namespace isotope
