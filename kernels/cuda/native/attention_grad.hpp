#pragma once
/// The gradient of attention on tensor cores: attention_grad_hopper.cu, or attention_grad_queries_mma.cu, which also computes delta, then
/// attention_grad_keys_mma.cu, or the portable kernels where these cannot run.
#include <isotope/fatbins/attention_grad_keys_mma.hpp>
#include <isotope/fatbins/attention_grad_queries_mma.hpp>
#include <isotope/kernels/cuda/portable/attention_grad.hpp>

#include "attention_hopper.hpp"
#include "attention_mma.hpp"

namespace isotope::cuda {

/// Makes the variants from the tiles that device code was compiled for.
struct attention_grad_native_tiles {
  using variant = attention_variant<true>;

  template <int D>
  static constexpr variant of_tensor_cores(std::string_view queries, std::string_view queries_dropout, std::string_view keys,
                                           std::string_view keys_dropout) {
    constexpr auto q = gpu::queries_tile<D>::value, k = gpu::keys_tile<D>::value;
    return {attention_kind::tensor_cores,
            D,
            {queries, queries_dropout, q.rows(), q.threads(), q.gradient_bytes()},
            {keys, keys_dropout, k.rows(), k.threads(), k.gradient_bytes()},
            250};
  }
  static constexpr variant of_warpgroups() {
    constexpr auto q = gpu::hopper_queries_tile, k = gpu::hopper_keys_tile;
    return {attention_kind::warpgroups,
            gpu::attention_hopper_tile::D,
            {"attention_grad_queries_hopper_64", "attention_grad_queries_hopper_64_dropout", q.rows(), q.threads(), q.gradient_bytes()},
            {"attention_grad_keys_hopper_64", "attention_grad_keys_hopper_64_dropout", k.rows(), k.threads(), k.gradient_bytes()},
            340};
  }
};

struct attention_grad_native : attention_grad_native_tiles {
  static constexpr auto variants =
      both(std::array<variant, 6>{of_warpgroups(),
                                  of_tensor_cores<32>("attention_grad_queries_mma_32", "attention_grad_queries_mma_32_dropout",
                                                      "attention_grad_keys_mma_32", "attention_grad_keys_mma_32_dropout"),
                                  of_tensor_cores<64>("attention_grad_queries_mma_64", "attention_grad_queries_mma_64_dropout",
                                                      "attention_grad_keys_mma_64", "attention_grad_keys_mma_64_dropout"),
                                  of_tensor_cores<80>("attention_grad_queries_mma_80", "attention_grad_queries_mma_80_dropout",
                                                      "attention_grad_keys_mma_80", "attention_grad_keys_mma_80_dropout"),
                                  of_tensor_cores<96>("attention_grad_queries_mma_96", "attention_grad_queries_mma_96_dropout",
                                                      "attention_grad_keys_mma_96", "attention_grad_keys_mma_96_dropout"),
                                  of_tensor_cores<128>("attention_grad_queries_mma_128", "attention_grad_queries_mma_128_dropout",
                                                       "attention_grad_keys_mma_128", "attention_grad_keys_mma_128_dropout")},
           attention_grad_portable::variants);
};

template <class P> struct kernel<op::attention_grad, P, kernels::native> {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.empty()) {
      enter_set(r, kernels::portable::name, "there are no queries");
      return kernel<op::attention_grad, P, kernels::portable>::record(l, r);
    }
    const auto w = with_tensor_cores(attention_work::of(h, l, true), h, l,
                                     fatbins::attention_grad_queries_mma.there() && fatbins::attention_grad_keys_mma.there());
    const auto* v = choose_kernel(attention_grad_native::variants, w, r.considered()).variant;
    if (v == nullptr || !on_tensor_cores(*v)) enter_set(r, kernels::portable::name, portable_reason(attention_grad_native::variants, w));
    if (v == nullptr) return kernel<op::attention_grad, P, kernels::portable>::record(l, r);
    if (!on_tensor_cores(*v)) return attention_grad_portable::record(*v, h, l, r);
    const bool hopper = v->kind == attention_kind::warpgroups;
    attention_grad_portable::record(*v, hopper ? fatbins::attention_grad_hopper : fatbins::attention_grad_queries_mma,
                                    hopper ? fatbins::attention_grad_hopper : fatbins::attention_grad_keys_mma, h, l, r, "bf16");
  }
};

}  // namespace isotope::cuda
