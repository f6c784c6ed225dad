#pragma once
/// Counter-based dropout: the mask depends on seed, step, stream and element alone.
#include <cmath>

#include <isotope/op/dropout.hpp>
#include <isotope/shaders/reference_dropout.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::dropout, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const double p = l.constants<op::dropout>().p;
    const struct {
      std::uint64_t x, y, scalars, least;
      std::uint32_t count, stream;
      float factor;
    } push{x.at, y.at, l.scalars, std::uint64_t(std::ceil(p * 0x1p32)), reference::word(n), l.ordinal, float(1 / (1 - p))};
    r.add(shaders::reference_dropout, reference::plain(l).add(x.type).add(y.type), push, reference::per_item(n),
          {x, reference::scalars_of(l)}, {y});
  }
};

}  // namespace isotope::vulkan
