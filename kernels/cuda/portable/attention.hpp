#pragma once
/// Attention in f32 on any device, by attention_f32.cu, or by attention.cu where the former does not take the operands.
#include <isotope/fatbins/attention.hpp>
#include <isotope/fatbins/attention_f32.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_f32.hpp"
#include "attention_rows.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention, P, kernels::portable> {
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    if (const auto& k = fitting_kernel(f32_functions, h); fits_f32_tiles(h, l, k.tile.forward_bytes())) {
      r.add(fatbins::attention_f32, k.function, h.arguments,
            per_block(h.query_blocks(k.tile.own()), std::uint32_t(k.tile.threads()), k.tile.forward_bytes()), h.reads(l),
            {l.out[0], l.out[1]});
      return;
    }
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
  static constexpr attention_f32_kernels f32_functions{{
      {"attention_f32_32", gpu::f32_forward_tile<32>::value},
      {"attention_f32_64", gpu::f32_forward_tile<64>::value},
      {"attention_f32_96", gpu::f32_forward_tile<96>::value},
      {"attention_f32_128", gpu::f32_forward_tile<128>::value},
  }};
  static constexpr attention_rows_kernels functions{{
      {"attention_32", gpu::forward_rows<32>::value},
      {"attention_64", gpu::forward_rows<64>::value},
      {"attention_128", gpu::forward_rows<128>::value},
      {"attention_256", gpu::forward_rows<256>::value},
  }};
};

}  // namespace isotope::cuda
