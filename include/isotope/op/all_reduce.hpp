#pragma once
/// Sums over the ranks of a group. The planner inserts this op (plan/distribute.hpp, plan/data_parallel.hpp); models do not call it.
#include "../core/tape.hpp"

namespace isotope::op {

/// What the collective ops have in common: which ranks take part, and how many they are.
struct collective_constants {
  std::int64_t group = 0;  // a rank_group
  std::int64_t ranks = 1;  // of the group
  static constexpr collective_constants of(const attributes& a) { return {.group = a.i[0], .ranks = a.i[1]}; }
  constexpr operator attributes() const { return {.i = {group, ranks}}; }
  static constexpr collective_constants of(rank_group g, const device_mesh& m) {
    return {.group = std::int64_t(g), .ranks = g == rank_group::tensor ? m.tensor : m.data};
  }
  constexpr rank_group which() const { return rank_group(group); }
};
/// Every rank of the group runs its collectives in the same order. An op that fails ends the run.
struct collective_op {
  using constants = collective_constants;
  static constexpr bool collective = true;
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
};

/// Operand x (...), in place: x = ((x of rank 0 + x of rank 1) + x of rank 2) + ..., in accumulation format, rounded once. Every rank gets the same bits.
struct all_reduce : collective_op {
  static constexpr std::string_view name = "all_reduce";
  static constexpr std::uint8_t inout = 1;
  static constexpr void infer(shape_rule& r) {
    if (r.require(is_floating(r.type(0)), "sums floating-point numbers only")) r.yield(r.dims(0), r.type(0));
  }
};

}  // namespace isotope::op
