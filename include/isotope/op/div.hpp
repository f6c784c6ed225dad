#pragma once
#include "binary.hpp"

namespace isotope {
namespace op {
/// db[i] = -(dy[i] / b[i]) (a[i] / b[i]), computed in one kernel and rounded once; separate ops would round each factor.  Operands a, b, dy.
struct div_grad {
  static constexpr std::string_view name = "div_grad";
  using gradient_of = struct div;
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    const auto ab = broadcast(r.dims(0), r.dims(1)), all = broadcast(ab.s, r.dims(2));
    dtype t{};
    if (r.require(ab.ok && all.ok, "shapes do not broadcast") &&
        r.require(promote(r.type(0), r.type(1), t) && promote(t, r.type(2), t) && is_floating(t),
                  "operands have different formats; cast one"))
      r.yield(all.s, t);
  }
};
struct div : binary_elementwise {
  static constexpr std::string_view name = "div";
  static constexpr neutral_operand neutral{.number = 1, .right = true};
  static constexpr bool calculate(double x, double y, double& result) {
    if (y == 0) return false;  // division by zero is not a constant expression
    return result = x / y, true;
  }
  static constexpr void gradient(pullback& g) {
    if (g.wants(0)) give(g, 0, apply<div>(place::current(), {}, g.dy(), g.x(1)));
    if (g.wants(1)) give(g, 1, apply<div_grad>(place::current(), {}, g.x(0), g.x(1), g.dy()));
  }
};
}  // namespace op

/// y[i] = a[i] / b[i]; a and b broadcast as in NumPy, aligned at the last axis.
/// @error  sizes differ and neither is 1; formats that do not mix (bf16 with f32 gives f32)
template <Machine M> constexpr tensor<M> div(tensor<M> a, tensor<M> b, place at = place::current()) { return apply<op::div>(at, {}, a, b); }
}  // namespace isotope
