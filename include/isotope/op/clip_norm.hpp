#pragma once
/// Gradient clipping by a tensor's own norm.
#include <cstdint>
#include <string_view>

#include "../core/tape.hpp"

namespace isotope::op {

/// Operand g, in place: g[i] = g[i] min(1, c / (n + 1e-6)), n = sqrt(sum (k g[i])^2), k = gradient_scale, c = step_scalars::clip_norm;
/// c <= 0: unchanged.
struct clip_norm {
  static constexpr std::string_view name = "clip_norm";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

}  // namespace isotope::op
