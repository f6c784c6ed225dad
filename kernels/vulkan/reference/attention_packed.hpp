#pragma once
/// Attention of packed sequences by the definition.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/attention_packed.hpp>
#include <isotope/shaders/reference_attention_packed.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::attention_packed, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const auto c = l.constants<op::attention_packed>();
    const view &q = l.in[0], &k = l.in[1], &v = l.in[2], &starts = l.in[3], &y = l.out[0];
    const auto n = q.dims[0] * c.heads;
    if (n == 0) return;
    const struct {
      std::uint64_t q, k, v, starts, y;
      std::uint32_t q_stride, k_stride, v_stride, y_stride, N, B, H;
      float scale;
    } push{q.at,
           k.at,
           v.at,
           starts.at,
           y.at,
           word(q.strides[0]),
           word(k.strides[0]),
           word(v.strides[0]),
           word(y.strides[0]),
           word(q.dims[0]),
           word(starts.dims[0] - 1),
           word(c.heads),
           float(c.scale)};
    r.add(shaders::reference_attention_packed, reference::plain(l).add(q.type).add(q.dims[1] / c.heads).add(c.causal), push,
          reference::per_item(n), {q, k, v, starts}, {y});
  }
};

}  // namespace isotope::vulkan
