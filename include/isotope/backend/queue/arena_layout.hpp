#pragma once
/// Where the regions of several plans over one set of parameters lie in a session's arena.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "../../plan/plan.hpp"

namespace isotope {

/// Where each region starts, and the scalars of the step.
struct region_addresses {
  std::array<std::uint64_t, value_kinds> at{};
  std::uint64_t scalars = 0;
  std::uint64_t operator[](value_kind k) const { return at[std::size_t(k)]; }
};

/// Parameters, gradients and what persists are shared; temporaries overlap, since one plan runs at a time; inputs lie in the frames' upload memory.
struct arena_layout {
  std::array<std::int64_t, value_kinds> at{};  // those of inputs and outputs mean nothing
  std::vector<std::int64_t> outputs;           // by plan
  std::int64_t bytes = 0;

  /// `own_outputs`: outputs have their place in the arena; else they lie in the frames' readback memory.
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
  /// Where an operand of a plan starts that is neither an input nor, in readback memory, an output.
  std::int64_t of(const operand& o, std::size_t plan) const {
    return (o.region == value_kind::output ? outputs[plan] : (*this)[o.region]) + o.at;
  }
};

}  // namespace isotope
