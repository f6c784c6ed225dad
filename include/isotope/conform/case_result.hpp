#pragma once
/// The result of a case, as data and as a line.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "compare.hpp"

namespace isotope::conform {

/// `unsupported`: the op's specification, or a limit that the backend declares, excludes the case. `skipped`: it was not supposed to run here.
enum class verdict : std::uint8_t { passed, failed, unsupported, skipped };
constexpr std::string_view name_of(verdict v) {
  constexpr std::string_view names[] = {"pass", "fail", "unsupported", "skipped"};
  return names[std::size_t(v)];
}

struct case_result {
  verdict is = verdict::passed;
  std::string reason;             // what is wrong; empty: nothing
  std::string fix;                // what to look at
  std::vector<distance> results;  // by output, or by gradient
  bool refused = false;           // whether the op's shape rule refuses such operands
  std::set<std::string>
      variants;  // of the kernels that its ops ran in its batch, where it failed: op[kernel set], with the shader behind a colon
};
inline case_result failed_because(std::string reason, std::string fix) {
  case_result o;
  o.is = verdict::failed;
  o.reason = std::move(reason);
  o.fix = std::move(fix);
  return o;
}
inline case_result unsupported_because(std::string reason, std::string fix = {}) {
  case_result o = failed_because(std::move(reason), std::move(fix));
  o.is = verdict::unsupported;
  return o;
}
inline case_result skipped_because(std::string reason) {
  case_result o = failed_because(std::move(reason), {});
  o.is = verdict::skipped;
  return o;
}

}  // namespace isotope::conform
