#pragma once
/// Reductions that are made of others: logsumexp, norm, var, std_dev, any, all. `over` names axes, negative ones from the end; none: all. `keep` keeps reduced
/// axes with size 1.
#include "logic.hpp"
#include "softmax.hpp"
#include "sqrt.hpp"
#include "square.hpp"

namespace isotope {
namespace op {
/// The mask of the axes that a reduction names; none: all.
template <Machine M> constexpr std::int64_t axis_mask(tensor<M> x, std::initializer_list<int> over) {
  return over.size() == 0 ? (std::int64_t(1) << x.rank()) - 1 : axes::of(over, x.rank()).mask;
}
/// x without the axes of the mask, or with them if they are kept.
template <Machine M> constexpr tensor<M> without_axes(tensor<M> x, std::int64_t mask, bool keep, place at) {
  shape y;
  for (int k = 0; k < x.rank(); ++k)
    if (((mask >> k) & 1) == 0) y.push(x.dims().axis(k));
  return keep ? x : isotope::reshape(x, y, at);
}
}  // namespace op

/// y[...] = log sum exp x over the axes, by exponentials of x minus its maximum; -infinity for no finite x, infinity if one is infinite, NaN if one is NaN. The
/// gradient is the softmax.
/// @error  an axis outside the tensor, or no elements
template <Machine M>
constexpr tensor<M> logsumexp(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  const op::reduction::constants along{.axes = op::axis_mask(x, over), .keep = true};
  const auto top = apply<op::max>(at, along, x);
  // An infinite maximum is not subtracted, since infinity - infinity is NaN.
  const auto zero = fill(*x.machine, {}, x.type(), 0, at),
             most = fill(*x.machine, {}, x.type(), std::numeric_limits<double>::infinity(), at);
  const auto from = where(less(abs(top, at), most, at), top, zero, at);
  const auto total = apply<op::sum>(at, along, exp(sub(x, from, at), at));
  return op::without_axes(add(from, log(total, at), at), along.axes, keep, at);
}
/// y[...] = sqrt(sum x^2) over the axes. The gradient of the norm 0 is 0.
/// @error  an axis outside the tensor
template <Machine M>
constexpr tensor<M> norm(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  const auto squares = sum(square(x, at), over, keep, at);
  const auto zero = fill(*x.machine, {}, x.type(), 0, at), one = fill(*x.machine, {}, x.type(), 1, at);
  const auto none = equal(squares, zero, at);
  return where(none, zero, sqrt(where(none, one, squares, at), at), at);
}
/// y[...] = sum (x - mean x)^2 / (n - correction) over the n elements of the axes.
///
/// @param correction  1: the unbiased estimate of the variance of what x is a sample of; 0: the variance of x itself
/// @error             an axis outside the tensor or of a late size
/// Source: torch.var.
template <Machine M>
constexpr tensor<M> var(tensor<M> x, std::initializer_list<int> over = {}, double correction = 1, bool keep = false,
                        place at = place::current()) {
  const std::int64_t mask = op::axis_mask(x, over);
  const op::reduction::constants along{.axes = mask, .keep = true};
  const double n = mask < 0 ? 1 : double(op::reduction::length(x.dims(), mask));
  const auto squares = apply<op::mean>(at, along, square(sub(x, apply<op::mean>(at, along, x), at), at));
  // No terms beyond the correction have no variance, which is NaN, as in torch.
  const double factor = n > correction ? n / (n - correction) : std::numeric_limits<double>::quiet_NaN();
  return op::without_axes(correction == 0 ? squares : scale(squares, factor, at), mask < 0 ? 0 : mask, keep, at);
}
/// y[...] = sqrt(var x): the standard deviation. Parameters and errors as `var`; the gradient of a deviation of 0 is not finite.
template <Machine M>
constexpr tensor<M> std_dev(tensor<M> x, std::initializer_list<int> over = {}, double correction = 1, bool keep = false,
                            place at = place::current()) {
  return sqrt(var(x, over, correction, keep, at), at);
}
/// y[...] = whether one of the booleans over the axes holds; false for none. Not differentiable.
/// @error  x is not boolean, an axis outside the tensor
template <Machine M>
constexpr tensor<M> any(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  const op::truth_numbers<M> is(*x.machine, at);
  return less(is.zero, sum(where(x, is.one, is.zero, at), over, keep, at), at);
}
/// y[...] = whether all of the booleans over the axes hold; true for none. Not differentiable.
/// @error  x is not boolean, an axis outside the tensor
template <Machine M>
constexpr tensor<M> all(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  const op::truth_numbers<M> is(*x.machine, at);
  return equal(sum(where(x, is.zero, is.one, at), over, keep, at), is.zero, at);
}
}  // namespace isotope
