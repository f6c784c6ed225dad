#pragma once
/// Attention of packed sequences in the blocks of the kernel for whole sequences, in f32 or on pairs of bf16.
#include <isotope/kernels/cpu/attention/packed.hpp>
#include <isotope/kernels/cpu/native/attention.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class P> struct packed_attention_of {
  using in_f32 = portable::packed_attention<attention<f32_scores>>;
  static constexpr std::int64_t scratch(const step_shapes& s) { return in_f32::scratch(s); }
  static void run(const launch& l) {
    if constexpr (scores_in_pairs<P>)
      if (in_pairs(l, {0, 1, 2}, l.in[0].dims[1] / l.constants<op::attention_packed>().heads))
        return portable::packed_attention<attention<pair_scores>>::run(l);
    in_f32::run(l);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::attention_packed, P, kernels::native> : native::packed_attention_of<P> {};
}  // namespace isotope::cpu
