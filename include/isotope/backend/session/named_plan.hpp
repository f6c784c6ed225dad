#pragma once
/// Plans as a session loads them.
#include <string>
#include <string_view>

#include "../../plan/dynamic.hpp"

namespace isotope {

/// A plan and the name that callers run it by. The memory behind the view must outlive the session.
struct named_plan {
  std::string_view name;
  plan_view plan;
};
struct owned_plan {
  std::string name;
  dynamic_plan plan;
};

}  // namespace isotope
