#pragma once
/// The ops that move bytes: copy, concat, pad and fill.
#include <isotope/kernels/cuda/reference/fill.hpp>
#include <isotope/op/concat.hpp>
#include <isotope/op/copy.hpp>
#include <isotope/op/view.hpp>

#include <isotope/kernels/cuda/rows/move.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::copy, P, kernels::portable> {
  static void record(const launch& l, recording& r) { portable::record_move(r, l.in[0], l.out[0]); }
};

template <GpuPrecision P> struct kernel<op::concat, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const auto axis = int(l.constants<op::concat>().axis);
    std::int64_t first = 0;
    for (const view& x : l.in) {
      portable::record_move(r, x, portable::part_of(l.out[0], axis, first, x.dims[axis]));
      first += x.dims[axis];
    }
  }
};

template <GpuPrecision P> struct kernel<op::pad, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::pad>();
    const auto axis = int(c.axis);
    const std::int64_t first = c.first, end = first + x.dims[axis];
    portable::record_fill(r, portable::part_of(y, axis, 0, first), 0);  // zero is all bits zero in every format
    portable::record_move(r, x, portable::part_of(y, axis, first, x.dims[axis]));
    portable::record_fill(r, portable::part_of(y, axis, end, y.dims[axis] - end), 0);
  }
};

template <GpuPrecision P> struct kernel<op::fill, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view& y = l.out[0];
    std::uint64_t bits = reference::bits_of(y.type, l.constants<op::fill>().x);
    for (std::int64_t n = size_of(y.type); n < 8; n *= 2) {
      bits &= (std::uint64_t(1) << (8 * n)) - 1;
      bits |= bits << (8 * n);
    }
    portable::record_fill(r, y, bits);
  }
};

}  // namespace isotope::cuda
