#pragma once
#include <limits>

#include "select.hpp"

namespace isotope {
/// y[i] = low where x[i] < low, high where x[i] > high, else x[i], also for NaN. Any shape. An infinite bound is none; high wins over a
/// larger low. The gradient is dy where low <= x <= high, else 0.
template <Machine M> constexpr tensor<M> clamp(tensor<M> x, double low, double high, place at = place::current()) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (low > -infinity) {
    const auto bound = fill(*x.machine, {}, x.type(), low, at);
    x = where(less(x, bound, at), bound, x, at);
  }
  if (high < infinity) {
    const auto bound = fill(*x.machine, {}, x.type(), high, at);
    x = where(less(bound, x, at), bound, x, at);
  }
  return x;
}
}  // namespace isotope
