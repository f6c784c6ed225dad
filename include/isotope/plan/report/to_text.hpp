#pragma once
/// Formats the parts of a trace or plan for reports.
#include <cstdint>
#include <string>
#include <string_view>

#include "../plan.hpp"

namespace isotope {

constexpr std::string_view to_text(value_kind k) {
  constexpr std::string_view names[value_kinds] = {"input", "output", "param", "packed", "master", "grad", "moment", "state", "temp"};
  return names[std::size_t(k)];
}

inline std::string to_text(const shape& s) {
  fixed_string<128> t;
  t << s;
  return std::string(t.view());
}

/// first: the first micro-batch of a step, later: the others, last: after the last one.
constexpr std::string_view phases_to_text(std::uint8_t phases) {
  constexpr std::string_view names[8] = {"never", "first", "later", "first+later", "last", "first+last", "later+last", "always"};
  return names[phases & 7];
}

/// The ops of a fused body, "add+gelu"; "-" without one. Micros lie at `body` of `all`.
template <class Micros> std::string body_to_text(const Micros& all, std::int64_t body, std::int64_t size) {
  std::string r;
  for (std::int64_t k = 0; k < size; ++k) r += (k == 0 ? "" : "+") + std::string(all[std::size_t(body + k)].op->name);
  return r.empty() ? "-" : r;
}
inline std::string body_to_text(const plan_view& p, const step& s) { return body_to_text(p.micro_ops, s.body, s.body_size); }

/// "matmul", or "elementwise add+gelu".
inline std::string step_to_text(const plan_view& p, std::size_t i) {
  const step& s = p.steps[i];
  return std::string(s.op->name) + (s.body_size > 0 ? " " + body_to_text(p, s) : "");
}

/// Returns the parameters that step i reads, or those read last before it; empty if there are none.
inline std::string parameters_near(const plan_view& p, std::size_t i) {
  for (std::size_t k = i + 1; k-- > 0;) {
    const step& s = p.steps[k];
    std::string names;
    for (int j = 0; j < s.inputs; ++j) {
      const operand& o = p.operands[std::size_t(s.operands + j)];
      if (o.region != value_kind::param) continue;
      for (const auto& slot : p.slots)
        if (slot.at * size_of(slot.type) == o.at) names += (names.empty() ? "" : ", ") + std::string(slot.path.view());
    }
    if (!names.empty()) return names;
  }
  return {};
}

}  // namespace isotope
