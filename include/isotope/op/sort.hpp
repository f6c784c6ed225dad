#pragma once
/// Sorting along an axis, which is made of top_k and take_along.
#include <utility>

#include "arrange.hpp"
#include "take_along.hpp"
#include "top_k.hpp"

namespace isotope {
namespace op {
/// The indices that sort the last axis.
template <Machine M> constexpr tensor<M> order_of_last(tensor<M> x, bool descending, place at) {
  const std::int64_t n = x[-1];
  if (descending) return isotope::top_k(x, n, at).second;
  // In a row that is read from its end the last of equal elements comes first. The descending order of that row, read from its end, is the ascending one.
  const auto from_end = isotope::cast(isotope::top_k(isotope::flip(x, -1, at), n, at).second, dtype::f32, at);
  return isotope::cast(isotope::flip(isotope::shift(isotope::neg(from_end, at), double(n - 1), at), -1, at), dtype::i32, at);
}
}  // namespace op

/// The elements along an axis in order, and the indices that they had. Equal elements keep their order, 0 and -0 among them; NaN is larger than all numbers. The
/// gradient of an element goes to where it came from. Rows are short: as in top_k, the time of a row may grow with the square of its length.
///
/// @param x  (..., N, ...)
/// @return   (..., N, ...) in the format of x, and i32 indices
/// @error    an axis outside the tensor, of a late size, or of more than 2^24 elements; a tensor of integers
/// Source: torch.sort with stable=True.
template <Machine M>
constexpr std::pair<tensor<M>, tensor<M>> sort(tensor<M> x, int axis = -1, bool descending = false, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  message m;
  if (k < 0 || k >= x.rank() || x.dims().late(k)) {
    x.machine->fail(m << "sort: axis " << axis << " of " << x.dims() << " is none of a constant size", at);
    return {x, x};
  }
  const auto order = op::axis_to_end(op::order_of_last(op::axis_to_end(x, k, at), descending, at), k, at);
  return {take_along(x, order, k, at), order};
}
}  // namespace isotope
