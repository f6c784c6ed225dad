#pragma once
/// AdamW.
#include <cstdint>
#include <string_view>

#include "update_rule.hpp"

namespace isotope::op {

/// Operands w (N), m (N), v (N) [, shadow (N) [, packed]], g (N), norm (), loss (). All but the last three are updated in place.
/// If norm or loss is not finite, nothing is updated. With the scalars of the step,
/// lr = rate_scale learning_rate, t = optimizer_step, and c = gradient_scale min(1, clip_norm / (norm + 1e-6)), or c = gradient_scale if clip_norm <= 0 or not
/// `clips`:
///   m = beta1 m + (1 - beta1) c g,   v = beta2 v + (1 - beta2) (c g)^2
///   w = w - lr decay w (first `decaying` elements) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon),   shadow = w rounded
/// Source: Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2; clipping: Pascanu et al. 2012, arXiv:1211.5063.
struct adamw : update_rule {
  static constexpr std::string_view name = "adamw";
  static constexpr std::uint8_t inout = 0b11111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 3)) update_in_place(r);
  }
};

}  // namespace isotope::op
