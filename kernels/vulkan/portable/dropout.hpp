#pragma once
/// Counter-based dropout, four elements per Philox call.
#include <cmath>

#include <isotope/kernels/vulkan/reference/dropout.hpp>
#include <isotope/op/dropout.hpp>
#include <isotope/shaders/dropout.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::dropout, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    if (n == 0) return;
    if (!portable::all_aligned(x, y)) return portable::fall_through<op::dropout, P>(l, r, "dropout: the tensor is no whole vectors");
    const double p = l.constants<op::dropout>().p;
    const auto least = std::uint64_t(std::ceil(p * 0x1p32));  // the smallest word that keeps its element, at most 2^32
    const struct {
      std::uint64_t x, y, scalars;
      std::uint32_t count, stream, last;
      float factor;
    } push{x.at, y.at, l.scalars, portable::word(n), l.ordinal, std::uint32_t(least - 1), float(1 / (1 - p))};
    r.add(shaders::dropout, portable::flat(l).add(x.type).add(y.type).add(least == 0), push, portable::per_four(n),
          {x, portable::scalars_of(l)}, {y});
  }
};

}  // namespace isotope::vulkan
