#pragma once
/// Attention of packed sequences in the blocks of the kernel for whole sequences.
#include <isotope/kernels/cpu/attention/packed.hpp>
#include <isotope/kernels/cpu/portable/attention.hpp>

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::attention_packed, P, kernels::portable> : portable::packed_attention<portable::attention> {};
}  // namespace isotope::cpu
