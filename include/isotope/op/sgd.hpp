#pragma once
/// Stochastic gradient descent with momentum.
#include <cstdint>
#include <string_view>

#include "update_rule.hpp"

namespace isotope::op {

/// Operands w (N), m (N) [, shadow (N)], g (N), norm (), loss (). Constants, skipping and c are as in adamw:
///   m = momentum m + c g + decay w (decay on the first `decaying` elements),   w = w - lr m,   shadow = w rounded
/// Source: Sutskever et al. 2013; the form of PyTorch's SGD.
struct sgd : update_rule {
  static constexpr std::string_view name = "sgd";
  static constexpr std::uint8_t inout = 0b111;
  static constexpr void infer(shape_rule& r) {
    if (equal_counts(r, 2)) update_in_place(r);
  }
};

}  // namespace isotope::op
