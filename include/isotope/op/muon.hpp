#pragma once
/// The first and the last op of a Muon update. The planner puts matmuls between them (plan/muon.hpp).
#include "update_rule.hpp"

namespace isotope::op {

/// Operands m (N), in place, g (...) of N elements, norm (), loss (); outputs m, u (...) of the shape of g. `clips`, c and skipping are as in
/// adamw, and no other constant is read. In a skipped step m does not change and u = 0. Otherwise:
///   m = momentum m + c g,   u = c g + momentum m
/// Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/, in Nesterov's form.
struct momentum : update_rule {
  static constexpr std::string_view name = "momentum";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    if (!r.require(r.inputs() == 4, "takes m, the gradient, norm and loss") ||
        !r.require(r.dims(0).count() == r.dims(1).count(), "the gradient has another size than m"))
      return;
    r.yield(r.dims(0), r.type(0));
    r.yield(r.dims(1), r.accum());
  }
};

/// Operands w (N) [, shadow (N) [, packed]], x (N), norm (), loss (). All but the last three are updated in place. Constants and skipping are as in
/// adamw. With s = direction_scale:
///   w = w - lr decay w (first `decaying` elements) - lr s x,   shadow = w rounded
/// Source: Liu et al. 2025, arXiv:2502.16982, equation 4, without the matmuls that compute x.
struct muon : update_rule {
  static constexpr std::string_view name = "muon";
  static constexpr std::uint8_t inout = 0b111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 1)) update_in_place(r);
  }
};

}  // namespace isotope::op
