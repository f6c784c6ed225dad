#pragma once
/// Where the regions of a plan, and the outputs of its evaluation plan, lie in a session's arena.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "../state_dict.hpp"
#include "record.hpp"
#include "transfer.hpp"

namespace isotope::vulkan {

struct arena_layout {
  std::array<std::int64_t, value_kinds> at{};  // inputs are in upload memory: theirs means nothing
  std::int64_t evaluation_output = 0, bytes = 0;

  /// The evaluation works in the temporaries of the plan.
  static arena_layout of(const plan_view& plan, const plan_view& evaluation) {
    arena_layout r;
    for (int k = 0; k < value_kinds; ++k) {
      if (value_kind(k) == value_kind::input) continue;
      r.at[std::size_t(k)] = r.bytes;
      const auto own = plan.totals.region[std::size_t(k)], other = evaluation.totals.region[std::size_t(k)];
      r.bytes += value_kind(k) == value_kind::temp ? std::max(own, other) : own;
    }
    r.evaluation_output = r.bytes;
    r.bytes += evaluation.totals.region[std::size_t(value_kind::output)];
    return r;
  }
  std::int64_t operator[](value_kind k) const { return at[std::size_t(k)]; }
  /// What is copied to read tensors. @error not_found, invalid_argument for another length
  result<std::vector<transfer::piece>> pieces(const plan_view& plan, std::span<const tensor_read> all) const {
    std::vector<transfer::piece> r;
    for (const tensor_read& t : all) {
      const auto where = locate(plan, t.what, t.slot, std::int64_t(t.out.size()));
      if (!where) return where.error();
      r.push_back({(*this)[where->region] + where->at, std::as_writable_bytes(t.out)});
    }
    return r;
  }

  /// Addresses for kernels; `upload` is where the scalars lie, `inputs` the inputs.
  region_addresses addresses(std::uint64_t arena, std::uint64_t upload, std::int64_t inputs, bool evaluation) const {
    region_addresses r;
    for (std::size_t k = 0; k < at.size(); ++k) r.at[k] = arena + std::uint64_t(at[k]);
    r.at[std::size_t(value_kind::input)] = upload + std::uint64_t(inputs);
    if (evaluation) r.at[std::size_t(value_kind::output)] = arena + std::uint64_t(evaluation_output);
    r.scalars = upload;
    return r;
  }
};

}  // namespace isotope::vulkan
