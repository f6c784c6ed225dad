#pragma once
/// Converts between f32, bf16 and f16 in dense tensors; the reference kernel converts others.
#include <isotope/kernels/cuda/reference/cast.hpp>
#include <isotope/op/cast.hpp>

#include <isotope/kernels/cuda/rows/flat.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::cast, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    if (portable::all_load_as_f32(x, y) && is_dense(x.dims, x.strides)) portable::record_flat(r, x, y, false);
    else portable::fall_through<op::cast, P>(l, r, "cast: other formats than f32, bf16 and f16, or strides");
  }
};

}  // namespace isotope::cuda
