#pragma once
/// The op of a fused body.
#include <cstdint>
#include <string_view>

#include "../core/tape.hpp"

namespace isotope::op {

/// A step made of a fused body alone: every element-wise op runs through it.
struct elementwise {
  static constexpr std::string_view name = "elementwise";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr body_role body = body_role::alone;
  static constexpr int host_operands(const attributes&) { return 0; }
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
};

}  // namespace isotope::op
