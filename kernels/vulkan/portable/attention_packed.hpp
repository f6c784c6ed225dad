#pragma once
/// Attention of packed sequences on any device, by attention.comp, whose workgroups each find a sequence.
#include <isotope/kernels/vulkan/attention/tiles.hpp>
#include <isotope/kernels/vulkan/reference/attention_packed.hpp>
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/shaders/attention_packed.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::attention_packed, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const auto h = attention_heads::of_packed(l);
    const attention_tiles& t = tiles_of<attention_part::y>(attention_work::of_packed(h, l, rows), r.considered());
    if (!t.fit(h, l) || !portable::loads_as_f32(h.q.type))
      return portable::fall_through<op::attention_packed, P>(l, r, "heads need more shared memory, or the format is not f32, bf16 or f16");
    r.add(shaders::attention_packed, t.specialization(h, l), h.push(), h.packed_groups(t.queries), {l.in.begin(), l.in.end()}, {l.out[0]});
  }

 private:
  static constexpr std::int64_t rows =
      64;  // that tiles are chosen for: the same for all steps, so that the bits of a sequence do not depend on the others
};

}  // namespace isotope::vulkan
