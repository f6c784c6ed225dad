#pragma once
/// Attention on tensor cores: attention_hopper.cu or attention_mma.cu, or the portable kernel where neither can run.
#include <isotope/fatbins/attention_mma.hpp>
#include <isotope/kernels/cuda/portable/attention.hpp>

#include "attention_hopper.hpp"
#include "attention_mma.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention, P, kernels::native> {
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    const auto& k = fitting_kernel(functions, h);
    auto why = tensor_core_refusal(h, l, k.tile.forward_bytes());
    if (why.empty() && !fatbins::attention_mma.there()) why = "this build has no code for tensor cores";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention, P, kernels::portable>::record(l, r);
    }
    auto& d = attention_hopper::takes(h, l)
                  ? attention_hopper::record_forward(h, l, r)
                  : r.add(fatbins::attention_mma, k.function(h), h.arguments,
                          per_block(h.query_blocks(k.tile.rows()), std::uint32_t(k.tile.threads()), k.tile.forward_bytes()), h.reads(l),
                          {l.out[0], l.out[1]});
    d.matrices = "bf16";
  }

 private:
  static constexpr attention_mma_kernels functions{{
      {"attention_mma_32", "attention_mma_32_dropout", gpu::forward_tile<32>::value},
      {"attention_mma_64", "attention_mma_64_dropout", gpu::forward_tile<64>::value},
      {"attention_mma_80", "attention_mma_80_dropout", gpu::forward_tile<80>::value},
      {"attention_mma_96", "attention_mma_96_dropout", gpu::forward_tile<96>::value},
      {"attention_mma_128", "attention_mma_128_dropout", gpu::forward_tile<128>::value},
  }};
};

}  // namespace isotope::cuda
