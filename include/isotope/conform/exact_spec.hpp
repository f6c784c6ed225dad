#pragma once
/// What specifications of ops that move elements share: every result equals an element of an operand, bit for bit.
#include "reduction_axes.hpp"
#include "spec.hpp"

namespace isotope::conform {

struct exact_spec : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"x", holds::any}};
  static constexpr std::array outputs{result_role{"y", holds::any, comparison::exact}};
  static constexpr numeric_policy policy{.flushes_on_gpu = false};
  static constexpr std::array boundary{0.0, -0.0, 0x1p-149, infinity, nan};

  static void same(const array& x, answer& y) {
    y.value = x.at;
    y.slack.assign(x.at.size(), 0);
  }
};

}  // namespace isotope::conform
