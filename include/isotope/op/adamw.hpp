#pragma once
/// AdamW.
#include <cstdint>
#include <string_view>

#include "update_rule.hpp"

namespace isotope::op {

/// Operands w (N), m (N), v (N) [, shadow (N) [, packed]], g (N), norm (), loss (), all in place but the last three. attributes: i[0] elements
/// that decay (they come first), i[1] 1 with a shadow, i[2] 1 to clip by the global norm, i[3] columns of the weight w that the product's kernel
/// has a packed copy of (0: none), i[4] elements that all updates of the step write (0: N), f[0] factor on the learning rate lr.
/// Skipped whole where norm or loss is not finite. With the scalars of the step,
/// t = optimizer_step and c = gradient_scale min(1, clip_norm / (norm + 1e-6)) (clip_norm <= 0 or i[2] = 0: gradient_scale):
///   m = beta1 m + (1 - beta1) c g,   v = beta2 v + (1 - beta2) (c g)^2
///   w = w - lr decay w (first i[0] elements) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon),   shadow = w rounded
/// Source: Loshchilov & Hutter 2017, arXiv:1711.05101, algorithm 2; clipping: Pascanu et al. 2012, arXiv:1211.5063.
struct adamw {
  static constexpr std::string_view name = "adamw";
  static constexpr std::uint8_t inout = 0b11111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 3)) update_in_place(r);
  }
};

}  // namespace isotope::op
