#pragma once
/// Products over any axes.
#include "sum.hpp"

namespace isotope {
namespace op {
/// Operands x (rows, n), dy (rows): dx[r, i] = dy[r] times the product of all x[r, j] but x[r, i]. Nothing is divided, so zeros are no exception.
struct prod_grad {
  static constexpr std::string_view name = "prod_grad";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (r.require(is_floating(r.type(0)) && is_floating(r.type(1)), "needs floating-point tensors; cast them first") &&
        r.require(x.rank == 2 && r.dims(1).rank == 1 && r.dims(1)[0] == x[0], "needs rows and one number of each"))
      r.yield(x, r.type(0));
  }
};
struct prod : reduction {
  static constexpr std::string_view name = "prod";
  /// The reduced axes become the last one: a copy where they do not lie so.
  static constexpr void gradient(pullback& g) {
    const shape x = g.x(0).dims();
    const std::int64_t axes = constants::of(g.attr).axes;
    permute::constants order, back;
    shape permuted;
    for (int pass = 0; pass < 2; ++pass)
      for (int k = 0; k < x.rank; ++k) {
        if (((axes >> k) & 1) != pass) continue;
        order.order[std::size_t(permuted.rank)] = k;
        back.order[std::size_t(k)] = permuted.rank;
        permuted.push(x.axis(k));
      }
    const std::int64_t results = g.dy().dims().count();
    const auto rows = isotope::reshape(apply<permute>(place::current(), order, g.x(0)), {results, length(x, axes)});
    const auto dx = apply<prod_grad>(place::current(), {}, rows, isotope::reshape(g.dy(), {results}));
    g.give(0, apply<permute>(place::current(), back, isotope::reshape(dx, permuted)));
  }
};
}  // namespace op

/// y[...] = product of x over the axes, 1 where there is nothing to multiply; multiplied in f32 (f64 for f64) in fixed blocks and a tree:
/// |error| <= (n - 1) u |y| to first order in u for n terms, as long as no partial product leaves the range of the format.
/// The gradient is dy times the product of the other terms, also where some are zero. Shapes and errors as `sum`.
///
/// @param x     (...)       any floating-point tensor
/// @param over  the axes, negative ones from the end; none: all
/// @param keep  keep reduced axes with size 1
/// @return      (...)       x without the axes
/// @error       an axis outside the tensor
template <Machine M>
constexpr tensor<M> prod(tensor<M> x, std::initializer_list<int> over = {}, bool keep = false, place at = place::current()) {
  return reduce<op::prod>(x, over, keep, at);
}
}  // namespace isotope
