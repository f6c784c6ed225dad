#pragma once
#include "add.hpp"
#include "div.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "sqrt.hpp"
#include "sub.hpp"
#include "sum.hpp"

namespace isotope {
namespace op {
/// Operands x, weight, bias, mean, rstd, dy, and optionally an addend of the shape and format of x; outputs dx, dweight, dbias (accumulation
/// format). The addend is added to dx after dx is rounded.
/// With h = (x - mean) rstd and e = dy weight:  dx = rstd (e - avg(e) - h avg(e h)),  dweight = sum_rows dy h,  dbias = sum_rows dy.
struct layer_norm_grad {
  static constexpr std::string_view name = "layer_norm_grad";
  using gradient_of = struct layer_norm;
  static constexpr void infer(shape_rule& r) {
    if (r.inputs() > 6 && !r.require(r.dims(6) == r.dims(0) && r.type(6) == r.type(0), "the addend must have the shape and format of x"))
      return;
    r.yield(r.dims(0), r.type(0));
    r.yield(r.dims(1), r.accum());
    r.yield(r.dims(2), r.accum());
  }
};
/// Operands x (..., C), weight (C), bias (C); outputs y, mean (...), rstd (...) in accumulation format.
struct layer_norm {
  struct constants {
    double epsilon = 1e-5;  // added to the variance
    static constexpr constants of(const attributes& a) { return {.epsilon = a.f[0]}; }
    constexpr operator attributes() const { return {.f = {epsilon}}; }
  };
  static constexpr std::string_view name = "layer_norm";
  static constexpr bool cheap = true;
  static constexpr void decompose(decomposition& d) {
    const auto x = d.x(0);
    const auto mean = isotope::mean(x, {-1}, true, d.at), h = isotope::sub(x, mean, d.at);
    const auto variance = isotope::mean(isotope::mul(h, h, d.at), {-1}, true, d.at);
    const auto deviation = isotope::sqrt(isotope::shift(variance, constants::of(d.attr).epsilon, d.at), d.at);
    const auto scaled = isotope::mul(isotope::div(h, deviation, d.at), d.x(1), d.at);
    d.give(0, isotope::add(scaled, d.x(2), d.at));
  }
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    if (!r.require(x.rank >= 1 && r.dims(1) == shape{x.axis(-1)} && r.dims(2) == shape{x.axis(-1)},
                   "weight and bias must have the width of x"))
      return;
    shape rows;
    for (int i = 0; i + 1 < x.rank; ++i) rows.push(x.axis(i));
    r.yield(x, r.type(0));
    r.yield(rows, r.accum());
    r.yield(rows, r.accum());
  }
  static constexpr void gradient(pullback& g) {
    const auto r = g.give_first(rules<layer_norm_grad>, {g.x(0).id, g.x(1).id, g.x(2).id, g.y(1).id, g.y(2).id, g.dy().id});
    for (int k = 1; k < 3; ++k)
      if (g.wants(k)) g.give(k, {&g.machine(), r.out[std::size_t(k)]});
  }
};
}  // namespace op

/// y[i] = (x[i] - mean) / sqrt(var + epsilon) weight[i] + bias[i], mean and (biased) variance over the last axis.
///
/// @param x             (..., C)
/// @param weight, bias  (C)
/// @return              (..., C)
/// @error               weight or bias of another width
/// Statistics are computed in f32 (f64 for f64) in two passes, so nothing is lost if mean >> deviation. Source: Ba et al. 2016, arXiv:1607.06450.
template <Machine M>
constexpr tensor<M> layer_norm(tensor<M> x, tensor<M> weight, tensor<M> bias, double epsilon = 1e-5, place at = place::current()) {
  return apply<op::layer_norm>(at, op::layer_norm::constants{.epsilon = epsilon}, x, weight, bias);
}
}  // namespace isotope
