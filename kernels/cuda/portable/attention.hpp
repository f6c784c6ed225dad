#pragma once
/// Attention in f32 on any device, by attention.cu.
#include <isotope/fatbins/attention.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_rows.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    const auto& k = fitting_kernel(functions, h);
    const auto why = rows_refusal(h, l, k.tile.forward_bytes());
    if (!why.empty()) {
      enter_set(r, kernels::reference::name, why);
      return kernel<op::attention, P, kernels::reference>::record(l, r);
    }
    r.add(fatbins::attention, k.function, h.arguments, per_block(h.query_blocks(k.tile.own), k.tile.threads, k.tile.forward_bytes()),
          h.reads(l), {l.out[0], l.out[1]});
  }

 private:
  static constexpr attention_rows_kernels functions{{
      {"attention_32", gpu::forward_rows<32>::value},
      {"attention_64", gpu::forward_rows<64>::value},
      {"attention_128", gpu::forward_rows<128>::value},
      {"attention_256", gpu::forward_rows<256>::value},
  }};
};

}  // namespace isotope::cuda
