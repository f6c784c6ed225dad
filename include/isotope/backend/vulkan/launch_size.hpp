#pragma once
/// How many workgroups a dispatch has, and how many invocations each may have.
#include <algorithm>
#include <cstdint>

namespace isotope::vulkan {

/// Workgroups of a dispatch. Where every invocation, or every subgroup, works by itself, workgroups may have any number of them: `unit` says so.
struct groups {
  std::uint32_t x = 1, y = 1, z = 1;
  std::int64_t items = 0;  // invocations that have work
  std::uint32_t unit = 0;  // the invocations of a workgroup are a multiple of it; 0: its algorithm fixes their number
  std::uint32_t most = 0;  // ... and at most so many; 0: as many as the device takes

  /// The number of invocations next to `wanted` that a workgroup may have.
  std::uint32_t fit(std::uint32_t wanted) const {
    if (most != 0) wanted = std::min(wanted, most);
    return std::max(wanted / unit * unit, unit);
  }
};
/// Workgroups for n work items, `per` in each, over x and y so that no axis passes 65,535: `group_index()` counts them in shaders, which
/// must leave where it is past the end.
inline groups cover(std::int64_t n, std::int64_t per) {
  const std::int64_t all = (n + per - 1) / per, limit = 65535;
  if (all <= limit) return {std::uint32_t(all < 1 ? 1 : all), 1, 1};
  const std::int64_t rows = (all + limit - 1) / limit;
  return {std::uint32_t((all + rows - 1) / rows), std::uint32_t(rows), 1};
}
/// Workgroups of `usual` invocations for n that work each by itself: shaders that know `item_index()` and nothing of their neighbours.
inline groups per_invocation(std::int64_t n, std::int64_t usual) {
  groups g = cover(n, usual);
  g.items = n;
  g.unit = 1;
  return g;
}
/// The same workgroups with another number of invocations.
inline groups resized(const groups& g, std::uint32_t invocations) {
  groups r = cover(g.items, invocations);
  r.items = g.items, r.unit = g.unit, r.most = g.most;
  return r;
}
}  // namespace isotope::vulkan
