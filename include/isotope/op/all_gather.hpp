#pragma once
/// Collects what the ranks of a group have.
#include "all_reduce.hpp"

namespace isotope::op {

/// Operand x (...); output y (ranks, ...): y[r] = x of rank r.
struct all_gather : collective_op {
  static constexpr std::string_view name = "all_gather";
  static constexpr void infer(shape_rule& r) {
    if (!r.require(r.dims(0).rank < max_rank, "the result would have more than 6 axes")) return;
    shape y{constants::of(r.attr).ranks};
    for (int i = 0; i < r.dims(0).rank; ++i) y.push(r.dims(0).axis(i));
    r.yield(y, r.type(0));
  }
};

/// Operand x (N), in place, N a multiple of the ranks: piece r of x = piece r of rank r.
struct all_gather_pieces : collective_op {
  static constexpr std::string_view name = "all_gather_pieces";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    const auto ranks = constants::of(r.attr).ranks;
    if (r.require(ranks > 0 && r.dims(0).count() % ranks == 0, "the elements do not divide by the ranks")) r.yield(r.dims(0), r.type(0));
  }
};

}  // namespace isotope::op
