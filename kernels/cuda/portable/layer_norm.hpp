#pragma once
/// Layer normalisation: a warp or a block per row.
#include <isotope/op/layer_norm.hpp>

#include <isotope/kernels/cuda/rows/norm.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::layer_norm, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    portable::record_norm(l, r, {&l.in[0], &l.in[1], &l.in[2], &l.out[0], &l.out[1], &l.out[2], l.constants<op::layer_norm>().epsilon});
  }
};

template <GpuPrecision P> struct kernel<op::layer_norm_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0b1100001;  // x, dy and the addend may be overwritten: a row is read before its dx is written
  static constexpr bool takes_addend = true;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return portable::norm_parts::scratch(s.in[4].count(), s.in[1].count(), s.summed < 0 ? 2 : 3);
  }
  static constexpr bool column_sums(const step_shapes& s, std::span<const micro_op>, int summed) {
    return summed == 0 && portable::norm_grad_sums(s);
  }
  static void record(const launch& l, recording& r) {
    portable::record_norm_grad(l, r,
                               {&l.in[0], &l.in[1], &l.in[3], &l.in[4], &l.in[5], l.in.size() > 6 ? &l.in[6] : nullptr, &l.out[0],
                                &l.out[1], &l.out[2], l.column_sums});
  }
};

}  // namespace isotope::cuda
