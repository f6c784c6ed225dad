#pragma once
/// Bound by bytes. A boolean in a block is 0 or 1.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/select.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::less, P, kernels::native> : native::each_of<op::less, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b) {
    return a < b ? native::lanewise::all(1.0f) : native::vector{};
  }
};

template <NativeProgram P> struct kernel<op::equal, P, kernels::native> : native::each_of<op::equal, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b) {
    return a == b ? native::lanewise::all(1.0f) : native::vector{};
  }
};

template <NativeProgram P> struct kernel<op::select, P, kernels::native> : native::each_of<op::select, P, 3> {
  static ISOTOPE_INLINE native::vector of(native::vector c, native::vector a, native::vector b) { return c != 0.0f ? a : b; }
};

}  // namespace isotope::cpu
