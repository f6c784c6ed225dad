#pragma once
/// What a training step of a token model reads besides scalars.
#include <cstdint>
#include <span>
#include <string_view>

namespace isotope {

/// Token ids and what each is to predict: (B,S) row-major; a negative target is ignored.
struct batch {
  static constexpr std::string_view tokens_label = "tokens", targets_label = "targets";
  std::span<const std::int32_t> tokens, targets;

  /// give(name of a plan's input, its elements) for both.
  template <class Give> constexpr void each_input(const Give& give) const {
    give(tokens_label, tokens);
    give(targets_label, targets);
  }
};

}  // namespace isotope
