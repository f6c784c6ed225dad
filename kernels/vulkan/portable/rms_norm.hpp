#pragma once
/// Root-mean-square normalisation: like layer_norm without mean and bias.
#include <isotope/kernels/vulkan/reference/rms_norm.hpp>
#include <isotope/op/rms_norm.hpp>

#include <isotope/kernels/vulkan/rows/norm.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::rms_norm, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::rms_norm, P>(s); }
  static void record(const launch& l, recording& r) {
    if (!portable::record_norm(l, r, {&l.in[0], &l.in[1], nullptr, &l.out[0], nullptr, &l.out[1], l.constants<op::rms_norm>().epsilon}))
      portable::fall_through<op::rms_norm, P>(l, r, "rms_norm: rows too long for registers, or empty");
  }
};

template <class P> struct kernel<op::rms_norm_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0b1001;  // x or dy may be overwritten: a row is read before its dx is written
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::norm_chunks::bound(s.in[0].rows(), s.in[0].cols(), 1), portable::scratch_below<op::rms_norm_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    if (!portable::record_norm_grad(l, r, {&l.in[0], &l.in[1], nullptr, &l.in[2], &l.in[3], &l.out[0], &l.out[1], nullptr}))
      portable::fall_through<op::rms_norm_grad, P>(l, r, "rms_norm_grad: rows too long for registers");
  }
};

}  // namespace isotope::vulkan
