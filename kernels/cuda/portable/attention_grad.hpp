#pragma once
/// The gradient of attention in f32 on any device: attention_grad_queries_f32.cu, which also computes delta, then attention_grad_keys_f32.cu,
/// or attention_grad_queries.cu and attention_grad_keys.cu where the former do not take the operands. All evaluate each score, but need no
/// atomics.
#include <isotope/fatbins/attention_grad_keys.hpp>
#include <isotope/fatbins/attention_grad_keys_f32.hpp>
#include <isotope/fatbins/attention_grad_queries.hpp>
#include <isotope/fatbins/attention_grad_queries_f32.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_f32.hpp"
#include "attention_rows.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::attention_grad, P, kernels::portable> {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.B * h.G * h.D * (h.S + h.T) == 0) return;
    const auto &f32_queries = fitting_kernel(f32_query_functions, h), &f32_keys = fitting_kernel(f32_key_functions, h);
    if (fits_f32_tiles(h, l, std::max(f32_queries.tile.gradient_bytes(), f32_keys.tile.gradient_bytes())))
      return record_f32_tiles(f32_queries, f32_keys, h, l, r);
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
  static void record_f32_tiles(const attention_f32_kernel& queries, const attention_f32_kernel& keys, const attention_heads& h,
                               const launch& l, recording& r) {
    auto reads = h.gradient_reads(l);
    r.add(fatbins::attention_grad_queries_f32, queries.function, h.arguments,
          per_block(h.query_blocks(queries.tile.own()), std::uint32_t(queries.tile.threads()), queries.tile.gradient_bytes()), reads,
          {l.out[0], h.delta()});
    reads.push_back(h.delta());
    r.add(fatbins::attention_grad_keys_f32, keys.function, h.arguments,
          per_block(h.key_blocks(keys.tile.own()), std::uint32_t(keys.tile.threads()), keys.tile.gradient_bytes()), reads,
          h.keys_written(l));
  }
  static constexpr attention_f32_kernels f32_query_functions{{
      {"attention_grad_queries_f32_32", gpu::f32_queries_tile<32>::value},
      {"attention_grad_queries_f32_64", gpu::f32_queries_tile<64>::value},
      {"attention_grad_queries_f32_96", gpu::f32_queries_tile<96>::value},
      {"attention_grad_queries_f32_128", gpu::f32_queries_tile<128>::value},
  }};
  static constexpr attention_f32_kernels f32_key_functions{{
      {"attention_grad_keys_f32_32", gpu::f32_keys_tile<32>::value},
      {"attention_grad_keys_f32_64", gpu::f32_keys_tile<64>::value},
      {"attention_grad_keys_f32_96", gpu::f32_keys_tile<96>::value},
      {"attention_grad_keys_f32_128", gpu::f32_keys_tile<128>::value},
  }};
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
