#pragma once
/// Sums over the ranks of a group, of which each rank gets a piece.
#include "all_reduce.hpp"

namespace isotope::op {

/// Operand x (N), in place, N a multiple of the ranks: on rank r, piece r of x = the sum of that piece over all ranks, with the bits of all_reduce. The other
/// pieces then hold anything, but 0 where every rank had 0: padding stays as it is.
struct reduce_scatter : collective_op {
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    const auto ranks = constants::of(r.attr).ranks;
    if (r.require(is_floating(r.type(0)), "sums floating-point numbers only") &&
        r.require(ranks > 0 && r.dims(0).count() % ranks == 0, "the elements do not divide by the ranks"))
      r.yield(r.dims(0), r.type(0));
  }
};

}  // namespace isotope::op
