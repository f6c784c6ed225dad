#pragma once
/// The gradient of attention on tensor cores: attention_grad_hopper.cu, or attention_grad_queries_mma.cu, which also computes delta, then
/// attention_grad_keys_mma.cu, or the portable kernels where these cannot run.
#include <isotope/fatbins/attention_grad_keys_mma.hpp>
#include <isotope/fatbins/attention_grad_queries_mma.hpp>
#include <isotope/kernels/cuda/portable/attention_grad.hpp>

#include "attention_hopper.hpp"
#include "attention_mma.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_grad, P, kernels::native> {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    const auto &queries = fitting_kernel(query_functions, h), &keys = fitting_kernel(key_functions, h);
    auto why = tensor_core_refusal(h, l, std::max(queries.tile.gradient_bytes(), keys.tile.gradient_bytes()));
    if (why.empty() && !(fatbins::attention_grad_queries_mma.there() && fatbins::attention_grad_keys_mma.there()))
      why = "this build has no code for tensor cores";
    if (why.empty() && h.empty()) why = "there are no queries";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention_grad, P, kernels::portable>::record(l, r);
    }
    auto reads = h.gradient_reads(l);
    const bool hopper = attention_hopper::takes(h, l);
    const std::vector<range> first_writes{l.out[0], h.delta()};
    auto& first =
        hopper ? attention_hopper::record_queries(h, r, reads, first_writes)
               : record(fatbins::attention_grad_queries_mma, queries, h, h.query_blocks(queries.tile.rows()), r, reads, first_writes);
    first.matrices = "bf16";
    reads.push_back(h.delta());
    auto& second = hopper ? attention_hopper::record_keys(h, r, reads, h.keys_written(l))
                          : record(fatbins::attention_grad_keys_mma, keys, h, h.key_blocks(keys.tile.rows()), r, reads, h.keys_written(l));
    second.matrices = "bf16";
  }

 private:
  static dispatch& record(const device_code& code, const attention_mma_kernel& k, const attention_heads& h, std::int64_t blocks,
                          recording& r, const std::vector<range>& reads, const std::vector<range>& writes) {
    return r.add(code, k.function(h), h.arguments, per_block(blocks, std::uint32_t(k.tile.threads()), k.tile.gradient_bytes()), reads,
                 writes);
  }
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
