#pragma once
/// Logical functions of booleans, such as comparisons give. They are made of comparisons and choices, broadcast as in NumPy and have no
/// gradient.
#include "select.hpp"

namespace isotope {
namespace op {
/// 1 and 0 as tensors.
template <class M> struct truth_numbers {
  tensor<M> one, zero;
  constexpr truth_numbers(M& m, place at) : one(isotope::fill(m, {}, dtype::f32, 1, at)), zero(isotope::fill(m, {}, dtype::f32, 0, at)) {}
};
}  // namespace op

/// y[i] = not a[i].
/// @error  a is not boolean
template <Machine M> constexpr tensor<M> logical_not(tensor<M> a, place at = place::current()) {
  const op::truth_numbers<M> is(*a.machine, at);
  return equal(where(a, is.one, is.zero, at), is.zero, at);
}
/// y[i] = a[i] and b[i].
/// @error  an operand is not boolean; shapes do not broadcast
template <Machine M> constexpr tensor<M> logical_and(tensor<M> a, tensor<M> b, place at = place::current()) {
  const op::truth_numbers<M> is(*a.machine, at);
  return less(is.zero, where(a, where(b, is.one, is.zero, at), is.zero, at), at);
}
/// y[i] = a[i] or b[i].
/// @error  an operand is not boolean; shapes do not broadcast
template <Machine M> constexpr tensor<M> logical_or(tensor<M> a, tensor<M> b, place at = place::current()) {
  const op::truth_numbers<M> is(*a.machine, at);
  return less(is.zero, where(a, is.one, where(b, is.one, is.zero, at), at), at);
}
/// y[i] = whether one of a[i] and b[i] holds, but not both.
/// @error  an operand is not boolean; shapes do not broadcast
template <Machine M> constexpr tensor<M> logical_xor(tensor<M> a, tensor<M> b, place at = place::current()) {
  const op::truth_numbers<M> is(*a.machine, at);
  return less(is.zero, where(a, where(b, is.zero, is.one, at), where(b, is.one, is.zero, at), at), at);
}
}  // namespace isotope
