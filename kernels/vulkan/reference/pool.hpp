#pragma once
/// One row of each of several packed sequences.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/op/pool.hpp>
#include <isotope/shaders/reference_pool.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::pool, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const auto c = l.constants<op::pool>();
    const view &x = l.in[0], &starts = l.in[1], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const struct {
      std::uint64_t x, starts, y;
      std::uint32_t x_stride, y_stride, N, B, C;
    } push{x.at, starts.at, y.at, word(x.strides[0]), word(y.strides[0]), word(x.dims[0]), word(y.dims[0]), word(y.dims[1])};
    r.add(shaders::reference_pool, reference::plain(l).add(x.type).add(c.how == pooling_kind::first).add(c.normalise), push,
          cover(y.dims[0], 1), {x, starts}, {y});
  }
};

}  // namespace isotope::vulkan
