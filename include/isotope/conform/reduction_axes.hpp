#pragma once
/// Helpers for references that work along axes: which elements belong together, and how much their sums may lose.
#include <cmath>
#include <cstdint>

#include "array.hpp"

namespace isotope::conform {

/// Returns the roundings, relative to the sum of the magnitudes, of a sum of n terms in blocks of at most 64 with a tree over the blocks.
inline double sum_roundings(double n) { return n > 1 ? std::log2(n) + 72 : 8; }

/// Calls f(first, step, n) for every line of n elements along an axis.
template <class F> void for_each_line(const shape& s, int axis, F&& f) {
  std::int64_t step = 1;
  for (int k = axis + 1; k < s.rank; ++k) step *= s[k];
  const std::int64_t n = s[axis], lines = n == 0 ? 0 : s.count() / n;
  for (std::int64_t l = 0; l < lines; ++l) f(l / step * step * n + l % step, step, n);
}

/// A reduction over the axes of a mask.
struct reduced_shape {
  shape x, y;  // y without the axes
  std::int64_t mask = 0;
  reduced_shape(const shape& s, std::int64_t axes) : x(s), mask(axes) {
    for (int k = 0; k < s.rank; ++k)
      if (((mask >> k) & 1) == 0) y.push(s.axis(k));
  }
  std::int64_t position(const extents& at) const {
    std::int64_t p = 0;
    for (int k = 0; k < x.rank; ++k)
      if (((mask >> k) & 1) == 0) p = p * x[k] + at[std::size_t(k)];
    return p;
  }
  /// The number of terms of one result.
  std::int64_t length() const {
    std::int64_t n = 1;
    for (int k = 0; k < x.rank; ++k)
      if ((mask >> k) & 1) n *= x[k];
    return n;
  }
};

}  // namespace isotope::conform
