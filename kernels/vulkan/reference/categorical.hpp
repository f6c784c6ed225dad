#pragma once
/// Draws classes in proportion to softmax(logits / temperature).
#include <isotope/op/categorical.hpp>
#include <isotope/shaders/reference_categorical.hpp>

#include "items.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::categorical, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &logits = l.in[0], &y = l.out[0];
    const auto rows = y.dims.count();
    if (rows == 0) return;
    const struct {
      std::uint64_t logits, y, scalars;
      std::uint32_t rows, V, stream;
      float temperature;
    } push{logits.at, y.at, l.scalars, word(rows), word(logits.dims[-1]), l.ordinal, float(l.constants<op::categorical>().temperature)};
    r.add(shaders::reference_categorical, reference::plain(l).add(logits.type), push, reference::per_item(rows),
          {logits, reference::scalars_of(l)}, {y});
  }
};

}  // namespace isotope::vulkan
