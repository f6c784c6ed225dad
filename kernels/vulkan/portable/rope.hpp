#pragma once
/// Rotary position embedding, four pairs per invocation.
#include <isotope/kernels/vulkan/reference/rope.hpp>
#include <isotope/op/rope.hpp>
#include <isotope/shaders/rope.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::rope, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;  // both halves of a block are read before either is written
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3], count = x.dims.count() / 8;
    if (x.dims.count() == 0) return;
    if (D % 8 != 0 || !portable::all_aligned(x, y))
      return portable::fall_through<op::rope, P>(l, r, "rope: half heads are no whole vectors");
    const auto c = l.constants<op::rope>();
    reference::rope_tables t(l, r);
    using portable::word;
    const struct {
      std::uint64_t x, y, table, positions;
      std::uint32_t count, S, H, blocks;
      float direction;
      std::uint32_t rotated;
    } push{x.at, y.at, t.table, t.positions, word(count), word(S), word(H), word(D / 8), float(c.direction), word(c.rotated(H))};
    r.add(shaders::rope, portable::flat(l).add(x.type).add(l.in.size() > 1), push, per_invocation(count, portable::flat_group),
          std::move(t.reads), {y});
  }
};

}  // namespace isotope::vulkan
