#pragma once
/// Case-insensitive comparison of names.
#include <string_view>

namespace isotope {

/// Whether `part` occurs in `whole`, ignoring the case of ASCII letters.
constexpr bool contains_ignoring_case(std::string_view whole, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  for (std::size_t at = 0; at + part.size() <= whole.size(); ++at) {
    std::size_t k = 0;
    while (k < part.size() && lower(whole[at + k]) == lower(part[k])) ++k;
    if (k == part.size()) return true;
  }
  return false;
}

}  // namespace isotope
