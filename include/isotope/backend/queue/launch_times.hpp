#pragma once
/// How long each kernel launch of a run took, measured by the device's own clock.
#include <cstdint>
#include <string_view>
#include <vector>

#include "../../core/step.hpp"

namespace isotope {

struct launch_time {
  std::int32_t step = -1;  // of the plan
  std::string_view code, set, reason;
  double usec = 0;
  std::int64_t bytes = 0;  // read and written
};

/// One run of a plan, launch by launch.
struct timed_step {
  std::vector<launch_time> launches;
  step_report report;
};

}  // namespace isotope
