#pragma once
/// The k largest elements of rows and their indices.
#include <isotope/op/top_k.hpp>
#include <isotope/shaders/reference_top_k.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::top_k, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &values = l.out[0], &places = l.out[1];
    const std::int64_t n = x.dims[-1], rows = x.dims.count() / n;
    if (rows == 0) return;
    const struct {
      std::uint64_t x, values, places;
      std::uint32_t rows, n, k;
    } push{x.at, values.at, places.at, word(rows), word(n), word(l.constants<op::top_k>().k)};
    r.add(shaders::reference_top_k, reference::plain(l).add(x.type), push, reference::per_item(rows), {x}, {values, places});
  }
};

}  // namespace isotope::vulkan
