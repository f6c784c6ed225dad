#pragma once
/// Converts between f32, bf16 and f16 in dense tensors, four elements per invocation; the reference kernel converts others.
#include <isotope/kernels/vulkan/reference/cast.hpp>
#include <isotope/op/cast.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::cast, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    if (portable::loads_as_f32(x.type) && portable::loads_as_f32(y.type) && is_dense(x.dims, x.strides) && portable::all_aligned(x, y))
      portable::record_flat(l, r, x, y, false);
    else portable::fall_through<op::cast, P>(l, r, "cast: other formats than f32, bf16 and f16, or strides");
  }
};

}  // namespace isotope::vulkan
