#pragma once
#include "div.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "sqrt.hpp"
#include "sum.hpp"

namespace isotope {
namespace op {
/// Operands x, weight, rstd, dy, and optionally an addend as in layer_norm_grad; outputs dx, dweight (accumulation format).
/// With h = x rstd and e = dy weight:  dx = rstd (e - h avg(e h)),  dweight = sum_rows dy h.
struct rms_norm_grad {
  static constexpr std::string_view name = "rms_norm_grad";
  using gradient_of = struct rms_norm;
  static constexpr void infer(shape_rule& r) {
    if (r.inputs() > 4 && !r.require(r.dims(4) == r.dims(0) && r.type(4) == r.type(0), "the addend must have the shape and format of x"))
      return;
    r.yield(r.dims(0), r.type(0));
    r.yield(r.dims(1), r.accum());
  }
  /// Rows may be divided; the gradient of the weight is a pending sum then.
  static constexpr void shard(sharding& s) {
    if (!s.divided(0) || !divided_rows(s)) return;
    for (int k = 2; k < s.inputs(); ++k)
      if (!s.require(s.divided(k) && s.along(k) == s.along(0), "operands are divided in different ways")) return;
    s.yield(0, s.at(0));
    s.yield(1, distribution::partial());
  }
};
/// Operands x (..., C), weight (C); outputs y, rstd (...) in accumulation format.
struct rms_norm {
  struct constants {
    double epsilon = 1e-5;  // added to the mean square
    static constexpr constants of(const attributes& a) { return {.epsilon = a.f[0]}; }
    constexpr operator attributes() const { return {.f = {epsilon}}; }
  };
  static constexpr std::string_view name = "rms_norm";
  static constexpr bool cheap = true;
  static constexpr void decompose(decomposition& d) {
    const auto x = d.x(0), power = isotope::mean(isotope::mul(x, x, d.at), {-1}, true, d.at);
    const auto root = isotope::sqrt(isotope::shift(power, constants::of(d.attr).epsilon, d.at), d.at);
    d.give(0, isotope::mul(isotope::div(x, root, d.at), d.x(1), d.at));
  }
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (!r.require(x.rank >= 1 && r.dims(1) == shape{x.axis(-1)}, "weight must have the width of x")) return;
    shape rows;
    for (int i = 0; i + 1 < x.rank; ++i) rows.push(x.axis(i));
    r.yield(x, r.type(0));
    r.yield(rows, r.accum());
  }
  static constexpr void shard(sharding& s) {
    if (!s.divided(0) || !divided_rows(s)) return;
    s.yield(0, s.at(0));
    s.yield(1, s.at(0));
  }
  static constexpr void gradient(pullback& g) {
    const auto r = g.give_first(rules<rms_norm_grad>, {g.x(0).id, g.x(1).id, g.y(1).id, g.dy().id});
    if (g.wants(1)) g.give(1, {&g.machine(), r.out[1]});
  }
};
}  // namespace op

/// y[i] = x[i] / sqrt(avg(x^2) + epsilon) weight[i] over the last axis. x (..., C), weight (C).
/// @error  weight of another width
/// Source: Zhang & Sennrich 2019, arXiv:1910.07467.
template <Machine M> constexpr tensor<M> rms_norm(tensor<M> x, tensor<M> weight, double epsilon = 1e-5, place at = place::current()) {
  return apply<op::rms_norm>(at, op::rms_norm::constants{.epsilon = epsilon}, x, weight);
}
}  // namespace isotope
