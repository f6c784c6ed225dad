#pragma once
/// The shape rule of element-wise ops of one operand.
#include "../core/tape.hpp"

namespace isotope::op {

struct unary_elementwise {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr void infer(shape_rule& r) {
    if (r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first")) r.yield(r.dims(0), r.type(0));
  }
};

}  // namespace isotope::op
