#pragma once
#include "binary.hpp"
#include "mul.hpp"
#include "scale.hpp"

namespace isotope {
namespace op {
struct div : binary_elementwise {
  static constexpr std::string_view name = "div";
  /// da = dy / b,  db = -dy y / b
  static constexpr void gradient(pullback& g) {
    const auto da = apply<div>(place::current(), {}, g.dy(), g.x(1));
    if (g.wants(0)) give(g, 0, da);
    if (g.wants(1)) give(g, 1, isotope::scale(isotope::mul(da, g.y()), -1.0));
  }
};
}  // namespace op

/// y[i] = a[i] / b[i]; a and b broadcast as in NumPy, aligned at the last axis.
/// @error  sizes differ and neither is 1; formats that do not mix (bf16 with f32 gives f32)
template <Machine M> constexpr tensor<M> div(tensor<M> a, tensor<M> b, place at = place::current()) { return apply<op::div>(at, {}, a, b); }
}  // namespace isotope
