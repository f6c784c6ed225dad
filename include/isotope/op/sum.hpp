#pragma once
/// Sum and mean over any axes.
#include "../core/tape.hpp"
#include "scale.hpp"
#include "view.hpp"

namespace isotope {
namespace op {

struct reduction {
  struct constants {
    std::int64_t axes = 0;   // bit k: axis k is reduced
    bool keep = false;       // reduced axes are kept with size 1
    format_number format{};  // of the result; none: that of x
    static constexpr constants of(const attributes& a) {
      return {.axes = a.i[0], .keep = a.i[1] != 0, .format = format_number(a.i[2] - 1)};
    }
    constexpr operator attributes() const { return {.i = {axes, keep, 1 + format.number}}; }
  };
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    const auto c = constants::of(r.attr);
    if (!r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first") ||
        !r.require(c.axes >= 0 && c.axes < (std::int64_t(1) << x.rank), "an axis is outside the tensor"))
      return;
    shape y;
    for (int i = 0; i < x.rank; ++i)
      if (((c.axes >> i) & 1) == 0) y.push(x.axis(i));
      else if (c.keep) y.push(1);
    const dtype t = c.format.given() ? r.format(c.format) : r.type(0);
    if (r.require(is_floating(t), "the result needs a floating-point format")) r.yield(y, t);
  }
  /// A view of dy with the reduced axes restored, broadcast along them.
  static constexpr tensor<tape> repeated(pullback& g, tensor<tape> reduced) {
    shape kept = g.x(0).dims();
    const auto c = constants::of(g.attr);
    for (int i = 0; i < kept.rank; ++i)
      if ((c.axes >> i) & 1) kept.set(i, 1);
    return isotope::expand(isotope::reshape(reduced, kept), g.x(0).dims());
  }
  /// The number of elements that are summed into one result.
  static constexpr std::int64_t length(const shape& x, std::int64_t axes) {
    std::int64_t n = 1;
    for (int i = 0; i < x.rank; ++i)
      if ((axes >> i) & 1) n *= x[i];
    return n;
  }
};
struct sum : reduction {
  static constexpr std::string_view name = "sum";
  /// Sums over a divided axis are pending sums.
  static constexpr void shard(sharding& s) {
    if (!s.divided(0)) return;
    const auto c = constants::of(s.attr);
    const int axis = s.along(0).axis;
    if ((c.axes >> axis) & 1) return s.yield(0, distribution::partial());
    int to = axis;
    for (int i = 0; i < axis && !c.keep; ++i) to -= int((c.axes >> i) & 1);
    s.yield_divided(0, s.along(0).moved_to(to));
  }
  static constexpr void gradient(pullback& g) { g.give(0, repeated(g, g.dy())); }
};
struct mean : reduction {
  static constexpr std::string_view name = "mean";
  static constexpr void decompose(decomposition& d) {
    const shape x = d.x(0).dims();
    for (int i = 0; i < x.rank; ++i)
      if (x.late(i) && ((constants::of(d.attr).axes >> i) & 1) != 0) {
        message m;
        d.machine().fail(m << "mean: axis " << i << " of " << x << " has a late size, and this target divides by constants: divide a sum",
                         d.at);
        return;
      }
    const double n = double(length(d.x(0).dims(), constants::of(d.attr).axes));
    d.give(0, isotope::scale(apply<sum>(d.at, d.attr, d.x(0)), 1.0 / n, d.at));
  }
  static constexpr void gradient(pullback& g) {
    g.give(0, isotope::scale(repeated(g, g.dy()), 1.0 / double(length(g.x(0).dims(), constants::of(g.attr).axes))));
  }
};
}  // namespace op

/// The gradient dy of a broadcast operand, summed to the operand's shape and stored as t.
constexpr tensor<tape> sum_to(tensor<tape> dy, const shape& s, dtype t) {
  const shape from = dy.dims();
  op::sum::constants c{.format = t};
  for (int i = 0; i < from.rank; ++i) {
    const int k = i - (from.rank - s.rank);
    if (k < 0 || (s[k] == 1 && from[i] != 1)) c.axes |= std::int64_t(1) << i;
  }
  return c.axes == 0 ? dy : reshape(apply<op::sum>(place::current(), c, dy), s);
}
constexpr void op::expand::gradient(pullback& g) { g.give(0, sum_to(g.dy(), g.x(0).dims(), g.grad_type(0))); }

/// The axes of a reduction; {0, -1} are the first and the last.
struct axes {
  std::int64_t mask = 0;
  constexpr static axes of(std::initializer_list<int> l, int rank) {
    axes r;
    for (int i : l) {
      const int k = i < 0 ? i + rank : i;
      // For an axis that does not exist, a mask of -1 makes the shape rule fail.
      r.mask |= k >= 0 && k < rank ? std::int64_t(1) << k : std::int64_t(-1);
    }
    return r;
  }
};
template <class Op, Machine M> constexpr tensor<M> reduce(tensor<M> x, std::initializer_list<int> over, bool keep, place at) {
  const std::int64_t mask = over.size() == 0 ? (std::int64_t(1) << x.rank()) - 1 : axes::of(over, x.rank()).mask;
  return apply<Op>(at, typename Op::constants{.axes = mask, .keep = keep}, x);
}

/// y[...] = sum of x over the axes; accumulated in f32 (f64 for f64), pairwise or in fixed blocks: |error| <= log2(n) u sum|x| + O(block u)
///
/// @param x     (...)       any floating-point tensor
/// @param over  the axes, negative ones from the end; none: all
/// @param keep  keep reduced axes with size 1
/// @return      (...)       x without the axes
/// @error       an axis outside the tensor
template <Machine M>
constexpr tensor<M> sum(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  return reduce<op::sum>(x, over, keep, at);
}
/// y[...] = sum of x over the axes / number of terms. Shapes and errors as `sum`; the mean of no terms is NaN.
template <Machine M>
constexpr tensor<M> mean(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  return reduce<op::mean>(x, over, keep, at);
}
}  // namespace isotope
