#pragma once
/// Where the regions of several plans over one set of parameters lie in a session's arena.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "../../plan/plan.hpp"

namespace isotope {

/// The addresses at which the regions and the scalars of the step start.
struct region_addresses {
  std::array<std::uint64_t, value_kinds> at{};
  std::uint64_t scalars = 0;
  std::uint64_t operator[](value_kind k) const { return at[std::size_t(k)]; }
};

/// Byte offsets of the regions in the arena. All plans share parameters, gradients, moments and states. Their temporaries overlap, since only one plan runs
/// at a time. Inputs lie in the frames' upload memory.
struct arena_layout {
  std::array<std::int64_t, value_kinds> at{};  // the entries of inputs and outputs are unused
  std::vector<std::int64_t> outputs;           // where the outputs of each plan start
  std::int64_t bytes = 0;

  /// `own_outputs`: outputs lie in the arena; otherwise they lie in the frames' readback memory.
  static arena_layout of(std::span<const plan_view> plans, bool own_outputs) {
    arena_layout r;
    for (int k = 0; k < value_kinds; ++k) {
      if (value_kind(k) == value_kind::input || value_kind(k) == value_kind::output) continue;
      r.at[std::size_t(k)] = r.bytes;
      std::int64_t most = 0;
      for (const plan_view& p : plans) most = std::max(most, p.totals.region[std::size_t(k)]);
      r.bytes += most;
    }
    for (const plan_view& p : plans) {
      r.outputs.push_back(r.bytes);
      if (own_outputs) r.bytes += p.totals.region[std::size_t(value_kind::output)];
    }
    return r;
  }
  std::int64_t operator[](value_kind k) const { return at[std::size_t(k)]; }
  /// The offset of an operand of a plan. Not for inputs, nor for outputs that lie in readback memory.
  std::int64_t of(const operand& o, std::size_t plan) const {
    return (o.region == value_kind::output ? outputs[plan] : (*this)[o.region]) + o.at;
  }
};

}  // namespace isotope
