#pragma once
/// Attention of packed sequences on tensor cores.
#include <isotope/fatbins/attention_packed_mma.hpp>
#include <isotope/kernels/cuda/portable/attention_packed.hpp>

#include "attention_mma.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_packed, P, kernels::native> {
  static void record(const launch& l, recording& r) {
    const packed_heads h(l);
    if (h.empty()) return;
    const auto& k = fitting_kernel(functions, h);
    auto why = tensor_core_refusal(h, l, k.tile.forward_bytes());
    if (why.empty()) why = h.obstacle();
    if (why.empty() && !fatbins::attention_packed_mma.there()) why = "this build has no code for tensor cores";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention_packed, P, kernels::portable>::record(l, r);
    }
    auto& d = r.add(fatbins::attention_packed_mma, k.plain, h.packed,
                    per_block(h.blocks(k.tile.rows()), std::uint32_t(k.tile.threads()), k.tile.forward_bytes()), h.reads(l), {l.out[0]});
    d.matrices = "bf16";
    d.starts_early = true;
  }

 private:
  static constexpr attention_mma_kernels functions{{
      {"attention_packed_mma_32", {}, gpu::packed_tile<32>::value},
      {"attention_packed_mma_64", {}, gpu::packed_tile<64>::value},
      {"attention_packed_mma_80", {}, gpu::packed_tile<80>::value},
      {"attention_packed_mma_96", {}, gpu::packed_tile<96>::value},
      {"attention_packed_mma_128", {}, gpu::packed_tile<128>::value},
  }};
};

}  // namespace isotope::cuda
