#pragma once
/// Copies rows of keys and values to their places in the caches.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/cache_append.hpp>
#include <isotope/shaders/reference_cache_append.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::cache_append, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &k = l.in[2], &v = l.in[3], &sequence = l.in[4], &position = l.in[5], &keys = l.out[0], &values = l.out[1];
    const op::cache_sizes size(keys.dims);
    const auto N = k.dims[0], n = N * size.G * size.D;
    if (n == 0) return;
    const struct {
      std::uint64_t keys, values, k, v, sequence, position;
      std::uint32_t k_stride, v_stride, N, B, G, T, D;
    } push{keys.at, values.at,    k.at,         v.at,         sequence.at, position.at, word(k.strides[0]), word(v.strides[0]),
           word(N), word(size.B), word(size.G), word(size.T), word(size.D)};
    r.add(shaders::reference_cache_append, reference::plain(l).add(keys.type), push, reference::per_item(n),
          {k, v, sequence, position, keys, values}, {keys, values});
  }
};

}  // namespace isotope::vulkan
