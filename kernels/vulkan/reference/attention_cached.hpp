#pragma once
/// Attention over cached keys and values by the definition.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/attention_cached.hpp>
#include <isotope/shaders/reference_attention_cached.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::attention_cached, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const auto c = l.constants<op::attention_cached>();
    const view &q = l.in[0], &keys = l.in[1], &values = l.in[2], &sequence = l.in[3], &position = l.in[4], &y = l.out[0];
    const op::cache_sizes size(keys.dims);
    const auto n = q.dims[0] * c.heads;
    if (n == 0) return;
    const struct {
      std::uint64_t q, keys, values, sequence, position, y;
      std::uint32_t q_stride, y_stride, N, B, H, G, T;
      float scale;
    } push{q.at,
           keys.at,
           values.at,
           sequence.at,
           position.at,
           y.at,
           word(q.strides[0]),
           word(y.strides[0]),
           word(q.dims[0]),
           word(size.B),
           word(c.heads),
           word(size.G),
           word(size.T),
           float(c.scale)};
    r.add(shaders::reference_attention_cached, reference::plain(l).add(q.type).add(keys.type).add(size.D).add(c.window), push,
          reference::per_item(n), {q, keys, values, sequence, position}, {y});
  }
};

}  // namespace isotope::vulkan
