#pragma once
/// A predicted time, and what it consists of.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calibration.hpp"

namespace isotope {

/// What takes most of the time of a step.
enum class bound : std::uint8_t { matrix_rate, bandwidth, functions, launch };
inline constexpr std::array<std::string_view, 4> bound_names = {"matrix rate", "bandwidth", "functions", "launch"};
constexpr std::string_view name_of(bound b) { return bound_names[std::size_t(b)]; }

/// The predicted time of a step or a plan, in seconds, and what it consists of.
struct time_estimate {
  std::array<double, bound_names.size()> parts{};  // seconds, by bound
  std::int64_t flops = 0, bytes = 0;
  provenance from = provenance::measured;  // the weakest of the figures that were used

  double seconds() const {
    double sum = 0;
    for (const double s : parts) sum += s;
    return sum;
  }
  /// The part that takes most.
  bound limit() const { return bound(std::max_element(parts.begin(), parts.end()) - parts.begin()); }
  void add(const time_estimate& o, double times) {
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k] += times * o.parts[k];
    flops += std::int64_t(times) * o.flops;
    bytes += std::int64_t(times) * o.bytes;
    from = std::min(from, o.from);
  }
  friend bool operator==(const time_estimate&, const time_estimate&) = default;
};

}  // namespace isotope
