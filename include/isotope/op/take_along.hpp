#pragma once
/// Elements of rows by index, and their inverse: additions to the elements that indices name.
#include "cast.hpp"
#include "fill.hpp"

namespace isotope {
namespace op {
/// Operands x (..., N), updates (..., K), index (..., K) i32: y = x, and for k in ascending order y[..., index[..., k]] += updates[..., k], summed in
/// accumulation format and rounded once to the format of x. An index outside [0, N) changes nothing.
struct scatter_add {
  static constexpr std::string_view name = "scatter_add";
  static constexpr operand_layout layout = operand_layout::dense;
  static constexpr void infer(shape_rule& r) {
    if (rows_match(r, 0, 2) && r.require(is_floating(r.type(1)), "updates must be floating-point numbers") &&
        r.require(r.dims(1) == r.dims(2), "updates and indices differ in shape"))
      r.yield(r.dims(0), r.type(0));
  }
  /// Whether operand `index` holds integers and has the leading axes of operand `x`; reports what is wrong.
  static constexpr bool rows_match(shape_rule& r, int x, int index) {
    const shape &of = r.dims(x), &at = r.dims(index);
    if (!r.require(is_floating(r.type(x)), "needs a floating-point tensor; cast it first") ||
        !r.require(r.type(index) == dtype::i32, "indices must be i32") ||
        !r.require(of.rank >= 1 && at.rank == of.rank, "indices must have as many axes as the tensor"))
      return false;
    shape like = at;
    like.set(at.rank - 1, of.axis(-1));
    return r.require(like == of, "indices and the tensor differ outside the axis");
  }
  static constexpr void gradient(pullback& g);
};
/// Operands x (..., N), index (..., K) i32: y[..., k] = x[..., index[..., k]].
struct take_along {
  struct constants {
    bool zeros = false;  // an index outside [0, N) gives 0; false: NaN
    static constexpr constants of(const attributes& a) { return {.zeros = a.i[0] != 0}; }
    constexpr operator attributes() const { return {.i = {zeros}}; }
  };
  static constexpr std::string_view name = "take_along";
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr operand_layout layout = operand_layout::dense;
  static constexpr void infer(shape_rule& r) {
    if (scatter_add::rows_match(r, 0, 1)) r.yield(r.dims(1), r.type(0));
  }
  static constexpr void gradient(pullback& g) {
    const auto zero = isotope::fill(g.machine(), g.x(0).dims(), g.grad_type(0));
    g.give(0, apply<scatter_add>(place::current(), {}, zero, g.dy(), g.x(1)));
  }
};
constexpr void scatter_add::gradient(pullback& g) {
  if (g.wants(0)) g.give(0, isotope::cast(g.dy(), g.grad_type(0)));
  if (g.wants(1))
    g.give(1, isotope::cast(apply<take_along>(place::current(), take_along::constants{.zeros = true}, g.dy(), g.x(2)), g.grad_type(1)));
}

/// Exchanges an axis, counted from the first, with the last one.
template <Machine M> constexpr tensor<M> axis_to_end(tensor<M> x, int axis, place at) {
  permute::constants c;
  const int last = x.rank() - 1;
  for (int k = 0; k <= last; ++k) c.order[std::size_t(k)] = k == axis ? last : k == last ? axis : k;
  return axis == last || axis < 0 || axis > last ? x : apply<permute>(at, c, x);
}
}  // namespace op

/// y[..., k, ...] = x[..., index[..., k, ...], ...] along an axis. An index outside [0, N) gives NaN and has no gradient.
///
/// @param x      (..., N, ...)
/// @param index  (..., K, ...)  i32, with the other axes of x
/// @param axis   negative ones count from the end
/// @return       (..., K, ...)
/// @error        indices of another format; axes that differ
/// Source: numpy.take_along_axis.
template <Machine M> constexpr tensor<M> take_along(tensor<M> x, tensor<M> index, int axis = -1, place at = place::current()) {
  const int k = axis < 0 ? axis + x.rank() : axis;
  return op::axis_to_end(apply<op::take_along>(at, {}, op::axis_to_end(x, k, at), op::axis_to_end(index, k, at)), k, at);
}
/// y = x, and y[..., index[..., k, ...], ...] += updates[..., k, ...] along an axis for k in ascending order, so the bits never vary. It is summed in
/// accumulation format and rounded once. An index outside [0, N) changes nothing, and its update has no gradient.
///
/// @param x        (..., N, ...)
/// @param updates  (..., K, ...)
/// @param index    (..., K, ...)  i32
/// @return         (..., N, ...)  in the format of x
/// @error          indices of another format; axes that differ
/// Source: torch.Tensor.scatter_add.
template <Machine M>
constexpr tensor<M> scatter_add(tensor<M> x, tensor<M> updates, tensor<M> index, int axis = -1, place at = place::current()) {
  const int k = axis < 0 ? axis + x.rank() : axis;
  const auto rows = [&](tensor<M> t) { return op::axis_to_end(t, k, at); };
  return rows(apply<op::scatter_add>(at, {}, rows(x), rows(updates), rows(index)));
}
}  // namespace isotope
