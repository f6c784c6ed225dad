#pragma once
/// Views: transpose, permute, reshape, narrow, split, expand. They need no launch and no memory; only where the strides
/// do not allow a reshape, the recorder inserts a copy.
#include "../core/tape.hpp"
#include "divided_axis.hpp"

namespace isotope {
namespace op {

/// The constant of ops that work along one axis.
struct axis_constant {
  std::int64_t axis = 0;  // counted from the first
  static constexpr axis_constant of(const attributes& a) { return {.axis = a.i[0]}; }
  constexpr operator attributes() const { return {.i = {axis}}; }
};

/// Reorders axes.
struct permute {
  struct constants {
    std::array<std::int64_t, 8> order{};  // order[k]: the axis of x that becomes axis k; unused entries are 0
    static constexpr constants of(const attributes& a) { return {.order = a.i}; }
    constexpr operator attributes() const { return {.i = order}; }
  };
  static constexpr std::string_view name = "permute";
  static constexpr op_kind kind = op_kind::view;
  static constexpr void infer(shape_rule& r) {
    const value& x = r.in(0);
    const auto [order] = constants::of(r.attr);
    shape y;
    axis_map axes{};
    std::int64_t seen = 0;
    for (std::size_t k = std::size_t(x.dims.rank); k < order.size(); ++k)
      if (!r.require(order[k] == 0, "not a permutation of the axes")) return;
    for (int k = 0; k < x.dims.rank; ++k) {
      const auto from = order[std::size_t(k)];
      if (!r.require(from >= 0 && from < x.dims.rank && ((seen >> from) & 1) == 0, "not a permutation of the axes")) return;
      seen |= std::int64_t(1) << from;
      y.push(x.dims.axis(int(from)));
      axes[std::size_t(k)] = std::int8_t(from);
    }
    r.yield_view(y, axes);
  }
  static constexpr void shard(sharding& s) {
    const auto [order] = constants::of(s.attr);
    for (int k = 0; s.divided(0) && k < s.dims(0).rank; ++k)
      if (order[std::size_t(k)] == s.along(0).axis) s.yield_divided(0, s.along(0).moved_to(k));
  }
  static constexpr void gradient(pullback& g) {
    const auto [order] = constants::of(g.attr);
    constants back;
    for (int k = 0; k < g.x(0).rank(); ++k) back.order[std::size_t(order[std::size_t(k)])] = k;
    g.give(0, apply<permute>(place::current(), back, g.dy()));
  }
};

/// Gives the elements another shape.
struct reshape {
  struct constants {
    shape dims{};  // of the result: its sizes, its rank, and the slots of scalar dimensions in five bits each
    static constexpr constants of(const attributes& a) {
      constants c;
      c.dims.too_deep = a.i[6] < 0 || a.i[6] > max_rank;
      for (int k = 0; k < a.i[6] && k < max_rank; ++k) {
        const int slot = int((a.i[7] >> (5 * k)) & 31) - 1;
        c.dims.push(slot < 0 ? dim(a.i[std::size_t(k)]) : dim(scalar_dim{a.i[std::size_t(k)], slot}));
      }
      return c;
    }
    constexpr operator attributes() const {
      attributes a;
      for (int k = 0; k < dims.rank; ++k) {
        a.i[std::size_t(k)] = dims[k];
        a.i[7] |= std::int64_t(dims.slots[std::size_t(k)] + 1) << (5 * k);
      }
      a.i[6] = dims.too_deep ? max_rank + 1 : dims.rank;
      return a;
    }
  };
  static constexpr std::string_view name = "reshape";
  static constexpr op_kind kind = op_kind::view;
  static constexpr operand_layout layout = operand_layout::dense;
  static constexpr void infer(shape_rule& r) {
    const shape y = constants::of(r.attr).dims;
    message m;
    if (y.fault().empty() && y.count() != r.dims(0).count())
      r.fail(m << "element counts differ: " << r.dims(0) << " has " << r.dims(0).count() << ", " << y << " has " << y.count());
    else if ((y.has_scalar() || r.dims(0).has_scalar()) && late_count(y) != late_count(r.dims(0)))
      r.fail(m << "a late axis neither merges nor splits: " << r.dims(0) << " to " << y << ": name it in both with the same scalar_dim");
    r.yield_reshaped(y);
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    auto c = constants::of(s.attr);
    const auto to = reshaped_split(s.along(0), reshaped_axis::of(s.dims(0), s.along(0).axis, c.dims), s.parts());
    if (!s.require(to.divides(), "the new shape cuts through the pieces of the devices")) return;
    c.dims.set(to.axis, to.local(s.parts()));
    s.attr = c;
    s.yield_divided(0, to);
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<reshape>(place::current(), constants{g.x(0).dims()}, g.dy())); }
};

/// Selects a range of one axis.
struct narrow {
  struct constants {
    std::int64_t axis = 0;    // counted from the first
    std::int64_t first = 0;   // element of the axis
    std::int64_t length = 0;  // of the range
    static constexpr constants of(const attributes& a) { return {.axis = a.i[0], .first = a.i[1], .length = a.i[2]}; }
    constexpr operator attributes() const { return {.i = {axis, first, length}}; }
  };
  static constexpr std::string_view name = "narrow";
  static constexpr op_kind kind = op_kind::view;
  static constexpr void infer(shape_rule& r) {
    const value& x = r.in(0);
    const auto [axis, first, length] = constants::of(r.attr);
    message m;
    if (axis < 0 || axis >= x.dims.rank || first < 0 || length < 0 || first > x.dims[int(axis)] || length > x.dims[int(axis)] - first) {
      r.fail(m << "a range of " << length << " from " << first << " of axis " << axis << " is outside " << x.dims);
      return;
    }
    if (!r.require(!x.dims.late(int(axis)), "the axis has a late size: a range needs a constant one")) return;
    shape y = x.dims;
    y.set(int(axis), length);
    r.yield_view(y, own_axes, first, int(axis));
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    auto c = constants::of(s.attr);
    if (c.axis != s.along(0).axis) return s.yield(0, s.at(0));
    const auto part = group_range::of(s.along(0), c.first, c.length, s.parts());
    if (!s.require(part.along.divides(), "the range is not made of whole groups of the divided axis")) return;
    s.notes.ranges.note({s.along(0), c.first, c.length});
    c.first = part.before;
    c.length = part.along.local(s.parts());
    s.attr = c;
    s.yield_divided(0, part.along);
  }
  static constexpr void gradient(pullback& g);
};

/// y is x in a range of one axis and zero elsewhere. pad and narrow are each other's gradients.
struct pad {
  struct constants {
    std::int64_t axis = 0;   // counted from the first
    std::int64_t first = 0;  // where x starts
    std::int64_t size = 0;   // of the axis of y
    static constexpr constants of(const attributes& a) { return {.axis = a.i[0], .first = a.i[1], .size = a.i[2]}; }
    constexpr operator attributes() const { return {.i = {axis, first, size}}; }
  };
  static constexpr std::string_view name = "pad";
  static constexpr bool moves = true;
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) {
    shape y = r.dims(0);
    const auto [axis, first, size] = constants::of(r.attr);
    if (!r.require(axis >= 0 && axis < y.rank && first >= 0 && size >= 0 && y[int(axis)] <= size - first,
                   "range is outside the padded axis") ||
        !r.require(!y.late(int(axis)), "the axis has a late size: padding needs a constant one"))
      return;
    y.set(int(axis), size);
    r.yield(y, r.type(0));
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    auto c = constants::of(s.attr);
    if (s.along(0).axis != c.axis) return shard_like_first(s);
    for (int k = 0; k < s.notes.ranges.size(); ++k) {  // the axis has the groups that it had before a view took this range of it
      const divided_range& r = s.notes.ranges[k];
      if (r.along.axis != c.axis || r.along.size() != c.size || r.first != c.first || r.length != s.dims(0)[int(c.axis)]) continue;
      const auto part = group_range::of(r.along, r.first, r.length, s.parts());
      if (!(part.along == s.along(0))) continue;
      c.first = part.before;
      c.size = r.along.local(s.parts());
      s.attr = c;
      return s.yield_divided(0, r.along);
    }
    s.require(false, "the padded axis is divided");
  }
  static constexpr void gradient(pullback& g) {
    const auto c = constants::of(g.attr);
    const narrow::constants back{.axis = c.axis, .first = c.first, .length = g.x(0)[int(c.axis)]};
    g.give(0, apply<narrow>(place::current(), back, g.dy()));
  }
};
constexpr void narrow::gradient(pullback& g) {
  const auto c = constants::of(g.attr);
  g.give(0, apply<pad>(place::current(), pad::constants{.axis = c.axis, .first = c.first, .size = g.x(0)[int(c.axis)]}, g.dy()));
}

/// Repeats axes of size 1.
struct expand {
  using constants = reshape::constants;
  static constexpr std::string_view name = "expand";
  static constexpr op_kind kind = op_kind::view;
  static constexpr void infer(shape_rule& r) {
    const shape y = constants::of(r.attr).dims;
    const value& x = r.in(0);
    const auto b = broadcast(x.dims, y);
    message m;
    if (!b.ok || !(b.s == y)) {
      r.fail(m << "cannot repeat " << x.dims << " to " << y << ": only axes of size 1 repeat");
      return;
    }
    axis_map axes{};
    for (int i = 0; i < y.rank; ++i) {
      const int k = i - (y.rank - x.dims.rank);
      axes[std::size_t(i)] = std::int8_t(k < 0 || (x.dims[k] == 1 && y[i] != 1) ? -1 : k);
    }
    r.yield_view(y, axes);
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    auto c = constants::of(s.attr);
    const auto to = s.along(0).moved_to(s.along(0).axis + c.dims.rank - s.dims(0).rank);
    c.dims.set(to.axis, to.local(s.parts()));
    s.attr = c;
    s.yield_divided(0, to);
  }
  static constexpr void gradient(pullback& g);
};
}  // namespace op

/// y[..., j, i] = x[..., i, j]: exchanges the last two axes.
/// @error  x has fewer than two axes
template <Machine M> constexpr tensor<M> transpose(tensor<M> x, place at = place::current()) {
  op::permute::constants c;
  const int rank = x.rank();
  for (int k = 0; k < rank; ++k) c.order[std::size_t(k)] = k;
  if (rank >= 2) {
    c.order[std::size_t(rank - 1)] = rank - 2;
    c.order[std::size_t(rank - 2)] = rank - 1;
  } else {
    c.order[0] = -1;
  }
  return apply<op::permute>(at, c, x);
}
/// Axis k of y is axis order[k] of x.
/// @error  `order` is not a permutation of the axes of x
template <Machine M> constexpr tensor<M> permute(tensor<M> x, std::initializer_list<int> order, place at = place::current()) {
  op::permute::constants c;
  int k = 0;
  for (int i : order)
    if (k < max_rank) c.order[std::size_t(k++)] = i < 0 ? i + x.rank() : i;
  if (k != x.rank()) c.order[0] = -1;
  return apply<op::permute>(at, c, x);
}
/// The same elements, in row-major order, in another shape.
/// @error  the element counts differ
template <Machine M> constexpr tensor<M> reshape(tensor<M> x, const shape& s, place at = place::current()) {
  return x.valid() && x.dims() == s ? x : apply<op::reshape>(at, op::reshape::constants{s}, x);
}
/// y = x[first : first + length] along an axis.
/// @error  the range is outside the axis
template <Machine M>
constexpr tensor<M> narrow(tensor<M> x, int axis, std::int64_t first, std::int64_t length, place at = place::current()) {
  if (axis < 0) axis += x.rank();
  if (x.valid() && axis >= 0 && axis < x.rank() && first == 0 && length == x[axis]) return x;
  return apply<op::narrow>(at, op::narrow::constants{.axis = axis, .first = first, .length = length}, x);
}
/// y[first : first + size of x] = x along an axis of `size` elements; y is zero elsewhere.
/// @error  the range is outside the axis
template <Machine M> constexpr tensor<M> pad(tensor<M> x, int axis, std::int64_t first, std::int64_t size, place at = place::current()) {
  if (axis < 0) axis += x.rank();
  if (x.valid() && axis >= 0 && axis < x.rank() && first == 0 && size == x[axis]) return x;
  return apply<op::pad>(at, op::pad::constants{.axis = axis, .first = first, .size = size}, x);
}
/// Broadcasts x to the shape: repeats axes of size 1 and missing leading axes.
/// @error  an axis of another size than 1 differs from the shape
template <Machine M> constexpr tensor<M> expand(tensor<M> x, const shape& s, place at = place::current()) {
  return x.valid() && x.dims() == s ? x : apply<op::expand>(at, op::expand::constants{s}, x);
}
}  // namespace isotope

#include "sum.hpp"  // the gradient of expand is a sum
