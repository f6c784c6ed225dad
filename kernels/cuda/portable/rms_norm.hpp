#pragma once
/// Root-mean-square normalisation: like layer_norm without mean and bias.
#include <isotope/op/rms_norm.hpp>

#include <isotope/kernels/cuda/rows/norm.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::rms_norm, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    portable::record_norm(l, r, {&l.in[0], &l.in[1], nullptr, &l.out[0], nullptr, &l.out[1], l.constants<op::rms_norm>().epsilon});
  }
};

template <GpuPrecision P> struct kernel<op::rms_norm_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0b11001;  // x, dy and the addend may be overwritten: a row is read before its dx is written
  static constexpr bool takes_addend = true;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return portable::norm_parts::scratch(s.in[2].count(), s.in[1].count(), s.summed < 0 ? 1 : 2);
  }
  static constexpr bool column_sums(const step_shapes& s, std::span<const micro_op>, int summed) {
    return summed == 0 && portable::norm_grad_sums(s);
  }
  static void record(const launch& l, recording& r) {
    portable::record_norm_grad(l, r,
                               {&l.in[0], &l.in[1], nullptr, &l.in[2], &l.in[3], l.in.size() > 4 ? &l.in[4] : nullptr, &l.out[0], &l.out[1],
                                nullptr, l.column_sums});
  }
};

}  // namespace isotope::cuda
