#pragma once
/// Plans as a session loads them.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "../../core/error.hpp"
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
/// The number of a plan by its name. @error not_found, with the names there are
inline result<std::size_t> find_plan(std::span<const std::string> names, std::string_view label) {
  std::string all;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (names[k] == label) return k;
    all += (k == 0 ? "" : ", ") + names[k];
  }
  return fail(errc::not_found, "no plan '" + std::string(label) + "'", "session", "there are: " + all);
}

}  // namespace isotope
