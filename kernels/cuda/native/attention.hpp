#pragma once
/// Attention on tensor cores: attention_hopper.cu or attention_mma.cu, or a portable kernel where neither can run.
#include <isotope/fatbins/attention_mma.hpp>
#include <isotope/kernels/cuda/portable/attention.hpp>

#include "attention_hopper.hpp"
#include "attention_mma.hpp"

namespace isotope::cuda {

/// Makes the variants from the tiles that device code was compiled for.
struct attention_native_tiles {
  using variant = attention_variant<false>;

  template <int D> static constexpr variant of_tensor_cores(std::string_view plain, std::string_view dropout) {
    constexpr auto t = gpu::forward_tile<D>::value;
    return {attention_kind::tensor_cores, D, {plain, dropout, t.rows(), t.threads(), t.forward_bytes()}, {}, 200};
  }
  static constexpr variant of_warpgroups() {
    constexpr auto t = gpu::hopper_forward_tile;
    return {attention_kind::warpgroups,
            gpu::attention_hopper_tile::D,
            {"attention_hopper_64", "attention_hopper_64_dropout", t.rows(), t.threads(), t.forward_bytes()},
            {},
            290};
  }
};

struct attention_native : attention_native_tiles {
  static constexpr auto variants =
      both(std::array<variant, 6>{of_warpgroups(), of_tensor_cores<32>("attention_mma_32", "attention_mma_32_dropout"),
                                  of_tensor_cores<64>("attention_mma_64", "attention_mma_64_dropout"),
                                  of_tensor_cores<80>("attention_mma_80", "attention_mma_80_dropout"),
                                  of_tensor_cores<96>("attention_mma_96", "attention_mma_96_dropout"),
                                  of_tensor_cores<128>("attention_mma_128", "attention_mma_128_dropout")},
           attention_portable::variants);
};

template <class P> struct kernel<op::attention, P, kernels::native> {
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    const auto w = with_tensor_cores(attention_work::of(h, l, false), h, l, fatbins::attention_mma.there());
    const auto* v = choose_kernel(attention_native::variants, w, r.considered()).variant;
    if (v == nullptr || !on_tensor_cores(*v)) enter_set(r, kernels::portable::name, portable_reason(attention_native::variants, w));
    if (v == nullptr) return kernel<op::attention, P, kernels::portable>::record(l, r);
    if (!on_tensor_cores(*v)) return attention_portable::record(*v, h, l, r);
    const auto& code = v->kind == attention_kind::warpgroups ? fatbins::attention_hopper : fatbins::attention_mma;
    attention_portable::record(*v, code, h, l, r).matrices = "bf16";
  }
};

}  // namespace isotope::cuda
