#pragma once
/// Which steps run on a lower kernel set than the target asks for, and why.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch_row.hpp"

namespace isotope {

/// Launches of one op that fell through for one reason.
struct fall_through {
  std::string_view op, set;  // set: that runs
  std::string reason;
  std::int64_t launches = 0;
};

/// The planner's reason for a kernel set that is not the wanted one; empty: it is. `native_reason` is the backend's word on why it has no
/// native kernel of an op.
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

/// Why a launch runs in the set that it does; empty: it is the wanted one. The kernel's run-time reason overrides the planner's.
inline std::string_view reason_of(const launch_row& l, std::string_view wanted, std::string_view native_reason) {
  if (l.step < 0) return {};
  return l.reason.empty() ? reason_for(l.set, wanted, native_reason) : l.reason;
}

/// Launches that run on a lower kernel set than the target asks for.
inline std::vector<fall_through> fall_throughs(const plan_view& p, std::span<const launch_row> all, std::string_view wanted,
                                               std::string_view native_reason) {
  std::vector<fall_through> r;
  for (const launch_row& l : all)
    if (const auto reason = reason_of(l, wanted, native_reason); !reason.empty())
      add_launch(r, p.steps[std::size_t(l.step)].op->name, l.set, reason);
  return r;
}

}  // namespace isotope
