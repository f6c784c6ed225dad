#pragma once
/// Which nodes of a graph start before the node that they wait for has ended (programmatic dependent launch): they prepare and read weights meanwhile.
#include <cstdint>
#include <string_view>
#include <vector>

#include "launch.hpp"

namespace isotope::cuda {

/// Whether the machine code that a device of this compute capability takes waits for what a kernel depends on. The instruction exists from 9.0 on, so code for
/// older devices, which later ones may compile, does not. `architectures` is that of device_code.
constexpr bool waits_inside(std::string_view architectures, int compute) {
  bool any = false;
  for (std::size_t at = 0; at < architectures.size();) {
    std::size_t end = architectures.find(',', at);
    if (end == std::string_view::npos) end = architectures.size();
    const std::string_view one = architectures.substr(at, end - at);
    const bool text = one.starts_with("compute_");
    int number = 0;
    for (const char c : one.substr(text ? 8 : 0))
      if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
    any = any || (number >= 90 && number <= compute && (text || number / 10 == compute / 10));
    at = end + 1;
  }
  return any;
}

/// Element i is 1 if dispatch i may start early: it says so, waits for one kernel alone, and nothing that may still run then writes what it reads before it
/// waits. A kernel that starts early has not waited for the one before, so all of a chain of them may still run.
inline std::vector<std::uint8_t> early_starts(const std::vector<dispatch>& all, const dispatch_edges& waits, const device_limits& device) {
  std::vector<std::uint8_t> early(all.size(), 0);
  const auto writes_any = [&](const dispatch& d, const std::vector<range>& of) {
    for (const range& w : d.writes)
      for (const range& r : of)
        if (w.overlaps(r)) return true;
    return false;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const dispatch& d = all[i];
    if (!d.starts_early || waits[i].size() != 1 || d.code == nullptr || !waits_inside(d.code->architectures, device.compute)) continue;
    std::size_t k = waits[i][0];
    if (all[k].code == nullptr) continue;  // a copy, or a product of cuBLASLt
    bool free = !writes_any(all[k], d.early);
    while (free && early[k] != 0) {
      k = waits[k][0];
      free = !writes_any(all[k], d.early);
    }
    early[i] = free;
  }
  return early;
}

}  // namespace isotope::cuda
