#pragma once
/// Attention of packed sequences in the blocks of the kernel for whole sequences: in f32, on pairs of bf16, or on tiles of a matrix unit, which
/// computes all of a block, where a causal query's weights of 0 would meet values that it must not see, such as NaN; so causal attention is not made so.
#include <isotope/kernels/cpu/attention/packed.hpp>
#include <isotope/kernels/cpu/native/attention.hpp>
#include <isotope/kernels/cpu/native/attention/unit_scores.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Unit  as in matmul
template <class P, class Unit = matrix_unit> struct packed_attention_of {
  static constexpr bool tiles = Unit::there && lanes == Unit::rows && std::same_as<P, precision::bf16>;
  using in_f32 = portable::packed_attention<attention<f32_scores>>;
  static constexpr std::int64_t scratch(const step_shapes& s) { return in_f32::scratch(s); }
  static void run(const launch& l) {
    const auto c = l.constants<op::attention_packed>();
    if constexpr (tiles)
      if (!c.causal && unit_scores<Unit>::takes(l, {0, 1, 2}, l.in[0].dims[1] / c.heads))
        return portable::packed_attention<attention<unit_scores<Unit>>>::run(l);
    if constexpr (scores_in_pairs<P>)
      if (in_pairs(l, {0, 1, 2}, l.in[0].dims[1] / c.heads)) return portable::packed_attention<attention<pair_scores>>::run(l);
    in_f32::run(l);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::attention_packed, P, kernels::native> : native::packed_attention_of<P> {};
}  // namespace isotope::cpu
