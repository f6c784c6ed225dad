#pragma once
/// The gradient of attention on tensor cores: attention_grad_queries_mma.cu, which also computes delta, then attention_grad_keys_mma.cu, or
/// the portable kernels where these cannot run.
#include <isotope/fatbins/attention_grad_keys_mma.hpp>
#include <isotope/fatbins/attention_grad_queries_mma.hpp>
#include <isotope/kernels/cuda/portable/attention_grad.hpp>

#include "attention_mma.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_grad, P, kernels::native> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    const auto &queries = fitting_kernel(query_functions, h), &keys = fitting_kernel(key_functions, h);
    auto why = tensor_core_refusal(h, l, std::max(queries.tile.gradient_bytes(), keys.tile.gradient_bytes()));
    if (why.empty() && h.empty()) why = "there are no queries";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention_grad, P, kernels::portable>::record(l, r);
    }
    auto reads = h.gradient_reads(l);
    auto& first =
        r.add(fatbins::attention_grad_queries_mma, queries.function(h), h.arguments,
              per_block(h.query_blocks(queries.tile.rows()), std::uint32_t(queries.tile.threads()), queries.tile.gradient_bytes()), reads,
              {l.out[0], h.delta()});
    first.matrices = "bf16";
    reads.push_back(h.delta());
    auto& second = r.add(fatbins::attention_grad_keys_mma, keys.function(h), h.arguments,
                         per_block(h.key_blocks(keys.tile.rows()), std::uint32_t(keys.tile.threads()), keys.tile.gradient_bytes()), reads,
                         h.keys_written(l));
    second.matrices = "bf16";
  }

 private:
  static constexpr attention_mma_kernels query_functions{{
      {"attention_grad_queries_mma_32", "attention_grad_queries_mma_32_dropout", gpu::queries_tile<32>::value},
      {"attention_grad_queries_mma_64", "attention_grad_queries_mma_64_dropout", gpu::queries_tile<64>::value},
      {"attention_grad_queries_mma_80", "attention_grad_queries_mma_80_dropout", gpu::queries_tile<80>::value},
      {"attention_grad_queries_mma_96", "attention_grad_queries_mma_96_dropout", gpu::queries_tile<96>::value},
      {"attention_grad_queries_mma_128", "attention_grad_queries_mma_128_dropout", gpu::queries_tile<128>::value},
  }};
  static constexpr attention_mma_kernels key_functions{{
      {"attention_grad_keys_mma_32", "attention_grad_keys_mma_32_dropout", gpu::keys_tile<32>::value},
      {"attention_grad_keys_mma_64", "attention_grad_keys_mma_64_dropout", gpu::keys_tile<64>::value},
      {"attention_grad_keys_mma_80", "attention_grad_keys_mma_80_dropout", gpu::keys_tile<80>::value},
      {"attention_grad_keys_mma_96", "attention_grad_keys_mma_96_dropout", gpu::keys_tile<96>::value},
      {"attention_grad_keys_mma_128", "attention_grad_keys_mma_128_dropout", gpu::keys_tile<128>::value},
  }};
};

}  // namespace isotope::cuda
