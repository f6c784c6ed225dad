#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
struct rope {
  struct constants {
    std::int64_t first = 0;      // the position of the first row
    std::int64_t direction = 1;  // -1: the inverse rotation
    double base = 10000;         // of the rotation frequencies
    static constexpr constants of(const attributes& a) { return {.first = a.i[0], .direction = a.i[1], .base = a.f[0]}; }
    constexpr operator attributes() const { return {.i = {first, direction}, .f = {base}}; }
  };
  static constexpr std::string_view name = "rope";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    const auto [first, direction, base] = constants::of(r.attr);
    message m;
    if (direction != 1 && direction != -1) r.fail(m << "direction " << direction << " is neither 1 nor -1");
    else if (!(base > 0)) r.fail(m << "base " << base << " is not positive");
    else if (first < -max_elements || first > max_elements) r.fail(m << "first position " << first << " is beyond 2^40");
    else if (r.require(x.rank == 4 && x[3] % 2 == 0, "x must be [B,S,heads,head size] with an even head size") &&
             r.require(!x.late(3), "the head size is a late size: give a constant one"))
      r.yield(x, r.type(0));
  }
  static constexpr void gradient(pullback& g) {
    auto c = constants::of(g.attr);
    c.direction = -c.direction;
    g.give(0, apply<rope>(place::current(), c, g.dy()));
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
  return apply<op::rope>(at, op::rope::constants{.first = first, .base = base}, x);
}
}  // namespace isotope
