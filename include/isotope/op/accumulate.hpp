#pragma once
/// A sum over micro-batches, in place.
#include <cstdint>
#include <string_view>

#include "../core/tape.hpp"

namespace isotope::op {

/// Operands into, x: into[i] += x[i] in place; in the first phase of an accumulated step, into[i] = x[i].
struct accumulate {
  static constexpr std::string_view name = "accumulate";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr bool accumulates = true;
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    if (r.require(r.dims(0) == r.dims(1), "shapes differ")) r.yield(r.dims(0), r.type(0));
  }
};

}  // namespace isotope::op
