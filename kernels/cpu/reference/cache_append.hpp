#pragma once
/// Copies rows of keys and values to their places in the caches, one row after another.
#include <isotope/op/cache_append.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::cache_append, P, kernels::reference> {
  static void run(const launch& l) {
    const op::cache_sizes size(l.out[0].dims);
    const view &sequence = l.in[4], &position = l.in[5];
    for (std::int64_t n = 0; n < sequence.dims[0]; ++n) {
      const std::int64_t slot = sequence.as<const std::int32_t>()[n * sequence.strides[0]],
                         t = position.as<const std::int32_t>()[n * position.strides[0]];
      if (!size.has(slot, t)) continue;
      for (std::size_t k = 0; k < 2; ++k) {
        const view &rows = l.in[2 + k], &cache = l.out[k];
        for (std::int64_t g = 0; g < size.G; ++g)
          for (std::int64_t d = 0; d < size.D; ++d)
            reference::store(cache, slot * cache.strides[0] + g * cache.strides[1] + t * cache.strides[2] + d * cache.strides[3],
                             reference::load(rows, n * rows.strides[0] + (g * size.D + d) * rows.strides[1]));
      }
    }
  }
};

}  // namespace isotope::cpu
