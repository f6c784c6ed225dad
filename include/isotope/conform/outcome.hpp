#pragma once
/// What became of a case, as data and as a line.
#include <cstdint>
#include <string>
#include <vector>

#include "compare.hpp"

namespace isotope::conform {

enum class verdict : std::uint8_t { passed, failed, unsupported };
constexpr std::string_view name_of(verdict v) {
  constexpr std::string_view names[] = {"pass", "fail", "unsupported"};
  return names[std::size_t(v)];
}

struct outcome {
  verdict is = verdict::passed;
  std::string reason;             // what went wrong; empty: nothing
  std::string fix;                // what to look at
  std::vector<distance> results;  // by output, or by gradient
  bool refused = false;           // the op's shape rule takes no such operands
};
inline outcome failed_because(std::string reason, std::string fix) { return {verdict::failed, std::move(reason), std::move(fix), {}, false}; }

}  // namespace isotope::conform
