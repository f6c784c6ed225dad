#pragma once
/// The number of workgroups of a dispatch, and the number of invocations that each may have.
#include <algorithm>
#include <cstdint>

namespace isotope::vulkan {

/// Workgroups of a dispatch. If invocations (or subgroups) do not cooperate, the workgroup size is free, in multiples of `unit`.
struct groups {
  std::uint32_t x = 1, y = 1, z = 1;
  std::int64_t items = 0;  // invocations that have work
  std::uint32_t unit = 0;  // the workgroup size is a multiple of this; 0: the algorithm fixes the workgroup size
  std::uint32_t most = 0;  // the largest workgroup size; 0: the device's limit

  /// The largest allowed workgroup size up to `wanted`, but at least `unit`.
  std::uint32_t fit(std::uint32_t wanted) const {
    if (most != 0) wanted = std::min(wanted, most);
    return std::max(wanted / unit * unit, unit);
  }
};
/// Workgroups for n work items, `per` in each, spread over x and y so that no axis exceeds 65,535. Shaders number them by `group_index()`, and must return
/// if it is past the end.
inline groups cover(std::int64_t n, std::int64_t per) {
  const std::int64_t all = (n + per - 1) / per, limit = 65535;
  if (all <= limit) return {std::uint32_t(all < 1 ? 1 : all), 1, 1};
  const std::int64_t rows = (all + limit - 1) / limit;
  return {std::uint32_t((all + rows - 1) / rows), std::uint32_t(rows), 1};
}
/// Workgroups of `usual` invocations for n independent items: for shaders that use only `item_index()` and exchange nothing between invocations.
inline groups per_invocation(std::int64_t n, std::int64_t usual) {
  groups g = cover(n, usual);
  g.items = n;
  g.unit = 1;
  return g;
}
/// The workgroups for the same items with another workgroup size.
inline groups resized(const groups& g, std::uint32_t invocations) {
  groups r = cover(g.items, invocations);
  r.items = g.items, r.unit = g.unit, r.most = g.most;
  return r;
}
}  // namespace isotope::vulkan
