#pragma once
/// The two ends of a Muon update; the planner puts gemms between them (plan/muon.hpp).
#include "update_rule.hpp"

namespace isotope::op {

/// Operands m (N), in place, g (...) of N elements, norm (), loss (); outputs m, u (...) of the shape of g. `clips`, c and what makes a step
/// count are adamw's, and no other constant is read; where it does not count, m stays and u = 0:
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

/// Operands w (N) [, shadow (N) [, packed]], x (N), norm (), loss (), all in place but the last three; constants and skipping as adamw,
/// s = direction_scale:
///   w = w - lr decay w (first `decaying` elements) - lr s x,   shadow = w rounded
/// Source: Liu et al. 2025, arXiv:2502.16982, equation 4, without the gemms that make x.
struct muon : update_rule {
  static constexpr std::string_view name = "muon";
  static constexpr std::uint8_t inout = 0b111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 1)) update_in_place(r);
  }
};

}  // namespace isotope::op
