#pragma once
/// The k largest elements of rows and their indices.
#include <isotope/kernels/vulkan/reference/top_k.hpp>
#include <isotope/op/top_k.hpp>
#include <isotope/shaders/top_k.hpp>

#include <isotope/kernels/vulkan/rows/rows.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::top_k, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &x = l.in[0], &values = l.out[0], &places = l.out[1];
    const std::int64_t n = x.dims[-1], rows = x.dims.count() / n;
    if (rows == 0) return;
    const auto t = portable::team::streaming(*l.device, portable::divide_up(n, 4), 1);
    const struct {
      std::uint64_t x, values, places;
      std::uint32_t rows, n, k;
    } push{x.at, values.at, places.at, word(rows), word(n), word(l.constants<op::top_k>().k)};
    r.add(shaders::top_k, portable::of_rows(l, t, false).add(x.type), push, t.take(rows), {x}, {values, places}).subgroup =
        l.device->subgroup;
  }
};

}  // namespace isotope::vulkan
