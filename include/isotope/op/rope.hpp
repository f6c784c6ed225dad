#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// attributes: i[0] first position, i[1] -1 for the inverse rotation, else 1; f[0] base.
struct rope {
  static constexpr std::string_view name = "rope";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    message m;
    if (r.attr.i[1] != 1 && r.attr.i[1] != -1) r.fail(m << "direction " << r.attr.i[1] << " is neither 1 nor -1");
    else if (!(r.attr.f[0] > 0)) r.fail(m << "base " << r.attr.f[0] << " is not positive");
    else if (r.attr.i[0] < -max_elements || r.attr.i[0] > max_elements) r.fail(m << "first position " << r.attr.i[0] << " is beyond 2^40");
    else if (r.require(x.rank == 4 && x[3] % 2 == 0, "x must be [B,S,heads,head size] with an even head size")) r.yield(x, r.type(0));
  }
  static constexpr void gradient(pullback& g) {
    attributes a = g.attr;
    a.i[1] = -a.i[1];
    g.give(0, apply<rope>(place::current(), a, g.dy()));
  }
};
}  // namespace op

/// Rotary position embedding: with t = (first + s) base^(-2 d / D), for d < D/2
///   y[d] = x[d] cos t - x[d + D/2] sin t,   y[d + D/2] = x[d + D/2] cos t + x[d] sin t.
/// Angles and their sine and cosine are computed in f64.
///
/// @param x  (B, S, H, D)  D even
/// @return   (B, S, H, D)
/// @error    another rank, odd D, a base that is not positive
/// Source: Su et al. 2021, arXiv:2104.09864; halves paired as in GPT-NeoX.
template <Machine M> constexpr tensor<M> rope(tensor<M> x, double base = 10000, std::int64_t first = 0, place at = place::current()) {
  attributes a;
  a.i = {first, 1};
  a.f[0] = base;
  return apply<op::rope>(at, a, x);
}
}  // namespace isotope
