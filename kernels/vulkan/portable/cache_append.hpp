#pragma once
/// Copies rows of keys and values to their places in the caches, 16 bytes at a time where the rows are aligned.
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/op/cache_append.hpp>
#include <isotope/shaders/cache_append.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::cache_append, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &k = l.in[2], &v = l.in[3], &sequence = l.in[4], &position = l.in[5], &keys = l.out[0], &values = l.out[1];
    const op::cache_sizes size(keys.dims);
    const auto N = k.dims[0], width = size.G * size.D;
    if (N * width == 0) return;
    const std::int64_t bytes = size_of(keys.type);
    std::int64_t unit = 16;
    const auto fits = [&](const view& x, std::int64_t row) { return x.at % std::uint64_t(unit) == 0 && row * bytes % unit == 0; };
    while (unit > bytes && !(fits(k, k.strides[0]) && fits(v, v.strides[0]) && fits(keys, size.D) && fits(values, size.D))) unit /= 2;
    const std::int64_t elems = unit / bytes,
                       workgroup = portable::workgroup(*l.device, std::min<std::int64_t>(256, std::max(width / elems, N)));
    const struct {
      std::uint64_t keys, values, k, v, sequence, position;
      std::uint32_t k_stride, v_stride, N, B, G, T, D;
    } push{keys.at,
           values.at,
           k.at,
           v.at,
           sequence.at,
           position.at,
           word(k.strides[0] / elems),
           word(v.strides[0] / elems),
           word(N),
           word(size.B),
           word(size.G),
           word(size.T),
           word(size.D / elems)};
    r.add(shaders::cache_append, constants{word(workgroup), l.device->subgroup}.add(unit), push, cover(N, 1),
          {k, v, sequence, position, keys, values}, {keys, values});
  }
};

}  // namespace isotope::vulkan
