#pragma once
/// The k largest elements of rows, and their indices.
#include "../core/tape.hpp"

#include <utility>

namespace isotope {
namespace op {
/// Outputs: values (..., k) in the format of x, indices (..., k) i32.
struct top_k {
  struct constants {
    std::int64_t k = 1;  // how many of each row
    static constexpr constants of(const attributes& a) { return {.k = a.i[0]}; }
    constexpr operator attributes() const { return {.i = {k}}; }
  };
  static constexpr std::string_view name = "top_k";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    const auto [k] = constants::of(r.attr);
    if (!r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first") ||
        !r.require(x.rank >= 1, "needs rows of elements") ||
        !r.require(!x.late(-1), "a row has a late size: k of its elements need a constant one") ||
        !r.require(k >= 1 && k <= x[-1], "k is from 1 to the number of elements in a row"))
      return;
    shape y;
    for (int i = 0; i + 1 < x.rank; ++i) y.push(x.axis(i));
    y.push(k);
    r.yield(y, r.type(0));
    r.yield(y, dtype::i32);
  }
};
}  // namespace op

/// The k largest elements along the last axis in descending order, and their indices. Equal elements, 0 and -0 among them, keep their order, and NaN is
/// larger than all numbers. Time grows with k, on some devices with one pass over x per element, so k should be much smaller than N.
///
/// @param x  (..., N)
/// @return   values (..., k) in the format of x, indices (..., k) i32; neither is differentiable
/// @error    k < 1, k > N, a tensor of integers
template <Machine M> constexpr std::pair<tensor<M>, tensor<M>> top_k(tensor<M> x, std::int64_t k, place at = place::current()) {
  const applied y = apply_op<op::top_k>(x.machine, {x.id}, op::top_k::constants{.k = k}, at);
  return {tensor<M>{x.machine, y.out[0]}, tensor<M>{x.machine, y.out[1]}};
}
}  // namespace isotope
