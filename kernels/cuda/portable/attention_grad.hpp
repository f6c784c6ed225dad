#pragma once
/// The gradient of attention in f32 on any device: attention_grad_queries.cu, which also computes delta, then attention_grad_keys.cu. Both
/// evaluate each score, but need no atomics.
#include <isotope/fatbins/attention_grad_keys.hpp>
#include <isotope/fatbins/attention_grad_queries.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_rows.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.B * h.G * h.D * (h.S + h.T) == 0) return;
    const auto &queries = fitting_kernel(query_functions, h), &keys = fitting_kernel(key_functions, h);
    const auto why = rows_refusal(h, l, std::max(queries.tile.gradient_bytes(), keys.tile.gradient_bytes()));
    if (!why.empty()) {
      enter_set(r, kernels::reference::name, why);
      return kernel<op::attention_grad, P, kernels::reference>::record(l, r);
    }
    auto reads = h.gradient_reads(l);
    if (h.S > 0)
      r.add(fatbins::attention_grad_queries, queries.function, h.arguments,
            per_block(h.query_blocks(queries.tile.own), queries.tile.threads, queries.tile.gradient_bytes()), reads, {l.out[0], h.delta()});
    reads.push_back(h.delta());
    if (h.T > 0)
      r.add(fatbins::attention_grad_keys, keys.function, h.arguments,
            per_block(h.key_blocks(keys.tile.own), keys.tile.threads, keys.tile.gradient_bytes()), reads, h.keys_written(l));
  }

 private:
  static constexpr attention_rows_kernels query_functions{{
      {"attention_grad_queries_32", gpu::gradient_rows<32>::value},
      {"attention_grad_queries_64", gpu::gradient_rows<64>::value},
      {"attention_grad_queries_128", gpu::gradient_rows<128>::value},
      {"attention_grad_queries_256", gpu::gradient_rows<256>::value},
  }};
  static constexpr attention_rows_kernels key_functions{{
      {"attention_grad_keys_32", gpu::gradient_rows<32>::value},
      {"attention_grad_keys_64", gpu::gradient_rows<64>::value},
      {"attention_grad_keys_128", gpu::gradient_rows<128>::value},
      {"attention_grad_keys_256", gpu::gradient_rows<256>::value},
  }};
};

}  // namespace isotope::cuda
