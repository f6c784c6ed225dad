#pragma once
/// What a training step of a token model reads besides scalars.
#include <cstdint>
#include <span>

namespace isotope {

/// Token ids and what each is to predict: (B,S) row-major; a negative target is ignored.
struct batch {
  std::span<const std::int32_t> tokens, targets;

  /// give(name of a plan's input, its elements) for both.
  template <class Give> constexpr void each_input(const Give& give) const {
    give("tokens", tokens);
    give("targets", targets);
  }
};

}  // namespace isotope
