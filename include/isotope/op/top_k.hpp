#pragma once
/// The k largest elements of rows, and where they stand.
#include "../core/tape.hpp"

#include <utility>

namespace isotope {
namespace op {
/// attributes: i[0] k. Outputs: values (..., k) in the format of x, indices (..., k) i32.
struct top_k {
  static constexpr std::string_view name = "top_k";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (!r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first") ||
        !r.require(x.rank >= 1, "needs rows of elements") ||
        !r.require(r.attr.i[0] >= 1 && r.attr.i[0] <= x[-1], "k is from 1 to the number of elements in a row"))
      return;
    shape y;
    for (int i = 0; i + 1 < x.rank; ++i) y.push(x.axis(i));
    y.push(r.attr.i[0]);
    r.yield(y, r.type(0));
    r.yield(y, dtype::i32);
  }
};
}  // namespace op

/// The k largest elements along the last axis in falling order, and their indices: of equals (0 and -0 among them) the first comes first, and NaN is
/// above all numbers. Its work grows with k, on GPUs by a pass over x for each: for k far below the length of a row.
///
/// @param x  (..., N)
/// @return   values (..., k) in the format of x, indices (..., k) i32; neither is differentiable
/// @error    k < 1, k > N, a tensor of integers
template <Machine M> constexpr std::pair<tensor<M>, tensor<M>> top_k(tensor<M> x, std::int64_t k, place at = place::current()) {
  attributes a;
  a.i[0] = k;
  const applied y = apply_op<op::top_k>(x.machine, {x.id}, a, at);
  return {tensor<M>{x.machine, y.out[0]}, tensor<M>{x.machine, y.out[1]}};
}
}  // namespace isotope
