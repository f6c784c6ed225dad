#pragma once
/// Conversions between formats.
#include <isotope/op/cast.hpp>
#include <isotope/shaders/reference_cast.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::cast, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const reference::axes from(x);
    const struct {
      std::uint64_t x, y;
      std::uint32_t count;
      std::array<std::uint32_t, max_rank> dims, strides;
    } push{x.at, y.at, reference::word(n), from.dims, from.strides};
    r.add(shaders::reference_cast, reference::plain(l).add(x.type).add(y.type), push, reference::per_item(n), {x}, {y});
  }
};

}  // namespace isotope::vulkan
