#pragma once
/// Layer normalisation: a subgroup per row up to 1024 columns, a workgroup beyond.
#include <isotope/kernels/vulkan/reference/layer_norm.hpp>
#include <isotope/op/layer_norm.hpp>

#include <isotope/kernels/vulkan/rows/norm.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::layer_norm, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::layer_norm, P>(s); }
  static void record(const launch& l, recording& r) {
    if (!portable::record_norm(l, r,
                               {&l.in[0], &l.in[1], &l.in[2], &l.out[0], &l.out[1], &l.out[2], l.constants<op::layer_norm>().epsilon}))
      portable::fall_through<op::layer_norm, P>(l, r, "layer_norm: rows too long for registers, or empty");
  }
};

template <class P> struct kernel<op::layer_norm_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 0b100001;  // x or dy may be overwritten: a row is read before its dx is written
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(portable::norm_chunks::bound(s.in[0].rows(), s.in[0].cols(), 2), portable::scratch_below<op::layer_norm_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    if (!portable::record_norm_grad(l, r, {&l.in[0], &l.in[1], &l.in[3], &l.in[4], &l.in[5], &l.out[0], &l.out[1], &l.out[2]}))
      portable::fall_through<op::layer_norm_grad, P>(l, r, "layer_norm_grad: rows too long for registers");
  }
};

}  // namespace isotope::vulkan
