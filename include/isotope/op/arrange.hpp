#pragma once
/// Rearrangements that are made of views, concat and embedding: parts of any sizes, stack, repeat, tile, roll, flip, index_select; and tensors of numbers and
/// masks by position: iota, one_hot, tril, triu.
#include <array>
#include <span>
#include <vector>

#include "concat.hpp"
#include "cumsum.hpp"
#include "embedding.hpp"
#include "logic.hpp"

namespace isotope {
namespace op {
/// An axis counted from the first.
template <Machine M> constexpr int axis_of(tensor<M> x, int axis) { return axis < 0 ? axis + x.rank() : axis; }
/// The shape of x with another size of an axis.
template <Machine M> constexpr shape with_axis(tensor<M> x, int axis, std::int64_t size) {
  shape s = x.dims();
  if (axis >= 0 && axis < s.rank) s.set(axis, size);
  return s;
}
/// concat of any number of tensors.
template <Machine M> constexpr tensor<M> joined(std::span<const tensor<M>> parts, int axis, place at) {
  if (parts.size() == 1) return parts[0];
  std::vector<tensor<M>> groups;
  for (std::size_t first = 0; first < parts.size(); first += std::size_t(max_inputs)) {
    const std::size_t rest = parts.size() - first, most = std::size_t(max_inputs);
    const auto group = parts.subspan(first, rest < most ? rest : most);
    std::array<std::int32_t, std::size_t(max_inputs)> in{};
    for (std::size_t k = 0; k < group.size(); ++k) in[k] = group[k].id;
    M* const machine = parts[0].machine;
    const concat::constants along{.axis = axis};
    groups.push_back(group.size() == 1 ? group[0]
                                       : tensor<M>{machine, machine->apply(rules<concat>, {in.data(), group.size()}, along, at).out[0]});
  }
  return groups.empty() ? tensor<M>{} : joined(std::span<const tensor<M>>(groups), axis, at);
}
}  // namespace op

/// Parts of an axis with these sizes, which are views of x.
///
/// @param x      (..., n, ...)
/// @param sizes  of the parts, in order; their sum is n
/// @param axis   negative ones count from the end
/// @error        the sizes do not add up to that of the axis; a late axis
template <std::size_t N, Machine M>
constexpr std::array<tensor<M>, N> parts(tensor<M> x, const std::array<std::int64_t, N>& sizes, int axis = -1,
                                         place at = place::current()) {
  const int k = op::axis_of(x, axis);
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  std::array<tensor<M>, N> all{};
  message m;
  if (k >= 0 && k < x.rank() && total != x[k]) {
    x.machine->fail(m << "parts: sizes add up to " << total << ", axis " << k << " of " << x.dims() << " has " << x[k], at);
    return all;
  }
  std::int64_t first = 0;
  for (std::size_t p = 0; p < N; ++p) {
    all[p] = narrow(x, k, first, sizes[p], at);
    first += sizes[p];
  }
  return all;
}
/// Joins tensors of one shape along a new axis.
///
/// @param tensors  (...)  one or more
/// @param axis     of the result; negative ones count from its end
/// @return         (..., number of tensors, ...)
/// @error          shapes or formats differ, an axis outside the result
template <Machine M> constexpr tensor<M> stack(std::initializer_list<tensor<M>> tensors, int axis = 0, place at = place::current()) {
  std::vector<tensor<M>> rows;
  int k = 0;
  for (const auto& t : tensors) {
    k = axis < 0 ? axis + t.rank() + 1 : axis;
    shape s;
    for (int i = 0; i <= t.rank(); ++i) {
      if (i == k) s.push(1);
      if (i < t.rank()) s.push(t.dims().axis(i));
    }
    rows.push_back(reshape(t, s, at));
  }
  return rows.empty() ? tensor<M>{} : op::joined(std::span<const tensor<M>>(rows), k, at);
}
/// y[..., i, ...] = x[..., i / times, ...]: repeats each element of an axis. (..., n, ...) gives (..., n times, ...).
/// @error  an axis outside the tensor or of a late size
/// Source: numpy.repeat.
template <Machine M> constexpr tensor<M> repeat(tensor<M> x, std::int64_t times, int axis = -1, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  shape one, many;
  for (int i = 0; i < x.rank(); ++i) {
    one.push(x.dims().axis(i));
    many.push(x.dims().axis(i));
    if (i == k) one.push(1), many.push(times);
  }
  return reshape(expand(reshape(x, one, at), many, at), op::with_axis(x, k, x[k] * times), at);
}
/// y[..., i, ...] = x[..., i mod n, ...]: repeats an axis as a whole. (..., n, ...) gives (..., times n, ...).
/// @error  an axis outside the tensor or of a late size
/// Source: numpy.tile.
template <Machine M> constexpr tensor<M> tile(tensor<M> x, std::int64_t times, int axis = -1, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  shape one, many;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == k) one.push(1), many.push(times);
    one.push(x.dims().axis(i));
    many.push(x.dims().axis(i));
  }
  return reshape(expand(reshape(x, one, at), many, at), op::with_axis(x, k, x[k] * times), at);
}
/// y[..., i, ...] = x[..., (i - by) mod n, ...].
/// @error  an axis outside the tensor or of a late size
/// Source: numpy.roll.
template <Machine M> constexpr tensor<M> roll(tensor<M> x, std::int64_t by, int axis = -1, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  const std::int64_t n = k >= 0 && k < x.rank() ? x[k] : 0;
  const std::int64_t head = n == 0 ? 0 : ((by % n) + n) % n;
  if (head == 0) return x;
  return concat({narrow(x, k, n - head, head, at), narrow(x, k, 0, n - head, at)}, k, at);
}

/// 0, 1, 2, ..., n - 1 in f32, which holds whole numbers up to 2^24 exactly.
/// @error  n beyond 2^24
template <Machine M> constexpr tensor<M> iota(M& machine, std::int64_t n, place at = place::current()) {
  message m;
  if (n < 0 || n > (std::int64_t(1) << 24)) machine.fail(m << "iota: " << n << " numbers, f32 counts up to " << (1 << 24), at);
  return shift(cumsum(fill(machine, {n}, dtype::f32, 1, at), 0, false, at), -1, at);
}
/// y[..., k, ...] = x[..., ids[k], ...] along an axis. An id outside [0, N) gives NaN and has no gradient.
///
/// @param x    (..., N, ...)
/// @param ids  (K) i32
/// @return     (..., K, ...)
/// @error      ids of another format or rank, an axis outside the tensor
/// Source: torch.index_select.
template <Machine M> constexpr tensor<M> index_select(tensor<M> x, tensor<M> ids, int axis, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  op::permute::constants front, back;
  shape rows;
  rows.push(ids.rank() == 1 ? ids.dims().axis(0) : dim(0));
  std::int64_t row = 1;
  for (int i = 0, to = 1; i < x.rank(); ++i) {
    const int place_of = i == k ? 0 : to++;
    front.order[std::size_t(place_of)] = i;
    back.order[std::size_t(i)] = place_of;
    if (i == k) continue;
    rows.push(x.dims().axis(i));
    row *= x[i];
  }
  if (k < 0 || k >= x.rank()) front.order[0] = -1;
  const auto table = reshape(apply<op::permute>(at, front, x), {k >= 0 && k < x.rank() ? x[k] : 0, row}, at);
  return apply<op::permute>(at, back, reshape(embedding(table, ids, at), rows, at));
}
/// y[..., i, ...] = x[..., n - 1 - i, ...].
/// @error  an axis outside the tensor or of a late size
template <Machine M> constexpr tensor<M> flip(tensor<M> x, int axis = -1, place at = place::current()) {
  const int k = op::axis_of(x, axis);
  const std::int64_t n = k >= 0 && k < x.rank() ? x[k] : 0;
  const auto from_end = shift(neg(iota(*x.machine, n, at), at), double(n - 1), at);
  return index_select(x, cast(from_end, dtype::i32, at), k, at);
}
/// y[..., c] = 1 if ids[...] = c, else 0. An id outside [0, classes) gives a row of 0.
///
/// @param ids  (...)           i32
/// @return     (..., classes)  f32
/// @error      ids of another format, more than 2^24 classes
template <Machine M> constexpr tensor<M> one_hot(tensor<M> ids, std::int64_t classes, place at = place::current()) {
  shape rows = ids.dims();
  rows.push(1);
  const op::truth_numbers<M> is(*ids.machine, at);
  const auto of = reshape(cast(ids, dtype::f32, at), rows, at);
  return where(equal(of, iota(*ids.machine, classes, at), at), is.one, is.zero, at);
}
namespace op {
/// x where column - row is above `diagonal`, or where it is not, and 0 elsewhere.
template <Machine M> constexpr tensor<M> triangle(tensor<M> x, double diagonal, bool above, place at) {
  if (x.rank() < 2) {
    x.machine->fail(message("tril and triu need matrices, a tensor of two axes or more"), at);
    return x;
  }
  M& m = *x.machine;
  const auto rows = isotope::reshape(iota(m, x[-2], at), {x[-2], 1}, at), columns = iota(m, x[-1], at);
  const auto beyond = isotope::less(isotope::shift(rows, diagonal, at), columns, at);
  const auto zero = isotope::fill(m, {}, x.type(), 0, at);
  return above ? where(beyond, x, zero, at) : where(beyond, zero, x, at);
}
}  // namespace op
/// The lower triangles of matrices: y[..., i, j] = x[..., i, j] for j - i <= diagonal, else 0.
/// @error  fewer than two axes
template <Machine M> constexpr tensor<M> tril(tensor<M> x, int diagonal = 0, place at = place::current()) {
  return op::triangle(x, diagonal, false, at);
}
/// The upper triangles of matrices: y[..., i, j] = x[..., i, j] for j - i >= diagonal, else 0.
/// @error  fewer than two axes
template <Machine M> constexpr tensor<M> triu(tensor<M> x, int diagonal = 0, place at = place::current()) {
  return op::triangle(x, diagonal - 1, true, at);
}
}  // namespace isotope
