#pragma once
/// Gradient clipping by value.
#include <cstdint>
#include <string_view>

#include "../core/tape.hpp"

namespace isotope::op {

/// Operand g, in place: g[i] = min(max(g[i], -c), c), c = step_scalars::clip_value / gradient_scale; c <= 0: unchanged. NaN stays.
struct clip_value {
  static constexpr std::string_view name = "clip_value";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

}  // namespace isotope::op
