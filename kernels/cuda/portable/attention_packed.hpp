#pragma once
/// Attention of packed sequences in f32 on any device: by the kernels of attention of whole sequences, whose blocks each find a sequence.
#include <isotope/fatbins/attention_packed.hpp>
#include <isotope/fatbins/attention_packed_f32.hpp>
#include <isotope/kernels/cuda/attention/packed.hpp>
#include <isotope/kernels/cuda/reference/attention_packed.hpp>

#include "attention_f32.hpp"
#include "attention_rows.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_packed, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const packed_heads h(l);
    if (h.empty()) return;
    auto why = h.obstacle();
    if (const auto& k = fitting_kernel(f32_functions, h); why.empty() && takes_f32_tiles(h, l, k.tile.forward_bytes())) {
      r.add(fatbins::attention_packed_f32, k.function, h.packed,
            per_block(h.blocks(k.tile.own()), std::uint32_t(k.tile.threads()), k.tile.forward_bytes()), h.reads(l), {l.out[0]})
          .starts_early = true;
      return;
    }
    const auto& k = fitting_kernel(functions, h);
    if (why.empty()) why = rows_refusal(h, l, k.tile.forward_bytes());
    if (!why.empty()) {
      enter_set(r, kernels::reference::name, why);
      return kernel<op::attention_packed, P, kernels::reference>::record(l, r);
    }
    r.add(fatbins::attention_packed, k.function, h.packed, per_block(h.blocks(k.tile.own), k.tile.threads, k.tile.forward_bytes()),
          h.reads(l), {l.out[0]})
        .starts_early = true;
  }

 private:
  static constexpr attention_f32_kernels f32_functions{{
      {"attention_packed_f32_32", gpu::f32_forward_tile<32>::value},
      {"attention_packed_f32_64", gpu::f32_forward_tile<64>::value},
      {"attention_packed_f32_96", gpu::f32_forward_tile<96>::value},
      {"attention_packed_f32_128", gpu::f32_forward_tile<128>::value},
  }};
  static constexpr attention_rows_kernels functions{{
      {"attention_packed_32", gpu::forward_rows<32>::value},
      {"attention_packed_64", gpu::forward_rows<64>::value},
      {"attention_packed_128", gpu::forward_rows<128>::value},
      {"attention_packed_256", gpu::forward_rows<256>::value},
  }};
};

}  // namespace isotope::cuda
