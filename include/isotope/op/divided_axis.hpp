#pragma once
/// Where the divided axis of an operand is in the result of a view, and other parts of rules for divided operands.
#include "../core/tape.hpp"

namespace isotope::op {

/// Where an axis of the old shape is in the new one, after a reshape that only splits it, or merges it with axes behind it. -1: nowhere.
struct reshaped_axis {
  int axis = -1;
  std::int64_t times = 1, over = 1;  // its elements are so many times as many, or 1 / over of them
  static constexpr reshaped_axis of(const shape& from, int axis, const shape& to) {
    std::int64_t outer = 1, inner = 1, before = 1;
    for (int i = 0; i < axis; ++i) outer *= from[i];
    for (int i = axis + 1; i < from.rank; ++i) inner *= from[i];
    for (int k = 0; k < to.rank; ++k) {
      if (before == outer && (to[k] != 1 || from[axis] == 1)) {
        const std::int64_t n = from[axis], m = to[k];
        if (m == n) return {k, 1, 1};
        if (m > 0 && n % m == 0) return {k, 1, n / m};
        if (n > 0 && m % n == 0 && inner % (m / n) == 0) return {k, m / n, 1};
        return {};
      }
      before *= to[k];
    }
    return {};
  }
};
/// The pieces of a reshaped axis; it divides no axis where they do not.
constexpr axis_split reshaped_split(const axis_split& s, const reshaped_axis& r, int parts) {
  axis_split y = s.moved_to(r.axis);
  if (r.axis < 0 || (s.padded && (r.times != 1 || r.over != 1))) return {};
  for (int g = 0; g < y.groups && !s.padded; ++g) {
    auto& n = y.sizes[std::size_t(g)];
    if (n % r.over != 0 || n / r.over * r.times % (s.units > 0 ? s.units : parts) != 0) return {};
    n = n / r.over * r.times;
  }
  return y;
}

/// The groups of the elements [first, first + length) of a divided axis, where they are whole groups; and how many elements of a device are before them.
struct group_range {
  axis_split along;
  std::int64_t before = 0;
  static constexpr group_range of(const axis_split& s, std::int64_t first, std::int64_t length, int parts) {
    group_range r;
    axis_split part{.axis = s.axis, .units = s.units};
    std::int64_t at = 0;
    for (int g = 0; g < s.groups; ++g) {
      const std::int64_t n = s.sizes[std::size_t(g)];
      if (at >= first && at + n <= first + length) part.sizes[std::size_t(part.groups++)] = n;
      if (at + n <= first) r.before += s.padded ? n / parts : s.piece(g, parts);
      at += n;
    }
    if (!s.padded && part.size() == length) r.along = part;
    return r;
  }
};

/// The result has the axes and the pieces of operand 0.
constexpr void shard_like_first(sharding& s) {
  if (s.divided(0)) s.yield(0, s.at(0));
}
/// Whether operand 0 of an op over the last axis is divided along another axis, if at all.
constexpr bool divided_rows(sharding& s) {
  return s.require(!s.divided(0) || s.along(0).axis != s.dims(0).rank - 1, "the axis that it works along is divided");
}

}  // namespace isotope::op
