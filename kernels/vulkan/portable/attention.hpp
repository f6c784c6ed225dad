#pragma once
/// Attention on any device, by attention.comp.
#include <isotope/kernels/vulkan/attention/tiles.hpp>
#include <isotope/shaders/attention_whole.hpp>

namespace isotope::vulkan {

struct attention_portable {
  static void record(const attention_heads& h, const attention_tiles& t, const launch& l, recording& r) {
    r.add(shaders::attention_whole, t.specialization(h, l), h.push(), cover(h.B * h.H * ((h.S + t.queries - 1) / t.queries), 1), h.reads(l),
          {l.out[0], l.out[1]});
  }
};

template <class P> struct kernel<op::attention, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (!h.empty())
      attention_portable::record(h, tiles_of<attention_part::y>(attention_work::of(h, l, attention_part::y), r.considered()), l, r);
  }
};

}  // namespace isotope::vulkan
