#pragma once
/// Laws: two programs that must agree, independently of the reference.
#include <cstdint>
#include <span>
#include <string_view>

#include "../core/tape.hpp"
#include "call.hpp"

namespace isotope::conform {

/// `build` records both sides on the operands; they must agree within `slack` of the right side, beyond its rounding. A law without `build` is the
/// adjoint law of the op, judged by adjoint.hpp.
struct law {
  std::string_view name;
  struct sides {
    tensor<tape> left, right;
  };
  sides (*build)(std::span<const tensor<tape>> x, const attributes& a) = nullptr;
  void (*slack)(const call& c, answer& right) = nullptr;  // fills slack from the device's values; null: the bits must be equal
};

}  // namespace isotope::conform
