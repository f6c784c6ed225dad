#pragma once
/// The square root in constant expressions, where std::sqrt is not allowed.

namespace isotope {

/// sqrt(x) for x >= 0 by Newton's iteration: the same bits in a constant expression and at run time.
constexpr double square_root(double x) {
  if (!(x > 0)) return x;
  double r = x > 1 ? x : 1;
  for (int i = 0; i < 64; ++i) r = 0.5 * (r + x / r);
  return r;
}

static_assert(square_root(64) == 8 && square_root(0) == 0);

}  // namespace isotope
