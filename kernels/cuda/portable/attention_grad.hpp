#pragma once
/// The gradient of attention in f32 on any device: attention_grad_queries_f32.cu, which also computes delta, then attention_grad_keys_f32.cu,
/// or attention_grad_queries.cu and attention_grad_keys.cu where the former do not take the operands or are slower. All evaluate each score, but need no
/// atomics.
#include <isotope/fatbins/attention_grad_keys.hpp>
#include <isotope/fatbins/attention_grad_keys_f32.hpp>
#include <isotope/fatbins/attention_grad_queries.hpp>
#include <isotope/fatbins/attention_grad_queries_f32.hpp>
#include <isotope/kernels/cuda/attention/variants.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_f32.hpp"
#include "attention_rows.hpp"

namespace isotope::cuda {

/// Makes the variants from the tiles that device code was compiled for.
struct attention_grad_portable_tiles {
  using variant = attention_variant<true>;

  template <int D> static constexpr variant of_f32_tiles(std::string_view queries, std::string_view keys) {
    constexpr auto q = gpu::f32_queries_tile<D>::value, k = gpu::f32_keys_tile<D>::value;
    return {attention_kind::f32_tiles,
            D,
            {queries, queries, q.own(), q.threads(), q.gradient_bytes()},
            {keys, keys, k.own(), k.threads(), k.gradient_bytes()},
            25};
  }
  template <int D> static constexpr variant of_rows(std::string_view queries, std::string_view keys) {
    constexpr auto t = gpu::gradient_rows<D>::value;
    return {attention_kind::rows,
            D,
            {queries, queries, t.own, t.threads, t.gradient_bytes()},
            {keys, keys, t.own, t.threads, t.gradient_bytes()},
            25 * rows_speed};
  }
};

struct attention_grad_portable : attention_grad_portable_tiles {
  static constexpr std::array<variant, 8> variants{of_f32_tiles<32>("attention_grad_queries_f32_32", "attention_grad_keys_f32_32"),
                                                   of_f32_tiles<64>("attention_grad_queries_f32_64", "attention_grad_keys_f32_64"),
                                                   of_f32_tiles<96>("attention_grad_queries_f32_96", "attention_grad_keys_f32_96"),
                                                   of_f32_tiles<128>("attention_grad_queries_f32_128", "attention_grad_keys_f32_128"),
                                                   of_rows<32>("attention_grad_queries_32", "attention_grad_keys_32"),
                                                   of_rows<64>("attention_grad_queries_64", "attention_grad_keys_64"),
                                                   of_rows<128>("attention_grad_queries_128", "attention_grad_keys_128"),
                                                   of_rows<256>("attention_grad_queries_256", "attention_grad_keys_256")};

  /// Records both launches, and says which formats their products have.
  static void record(const variant& v, const device_code& queries, const device_code& keys, const attention_heads& h, const launch& l,
                     recording& r, std::string_view matrices = {}) {
    auto reads = h.gradient_reads(l);
    if (h.S > 0)
      r.add(queries, v.first.function(h), h.arguments,
            per_block(h.query_blocks(v.first.own), std::uint32_t(v.first.threads), v.first.shared_bytes), reads, {l.out[0], h.delta()})
          .matrices = matrices;
    reads.push_back(h.delta());
    if (h.T > 0)
      r.add(keys, v.second.function(h), h.arguments,
            per_block(h.key_blocks(v.second.own), std::uint32_t(v.second.threads), v.second.shared_bytes), reads, h.keys_written(l))
          .matrices = matrices;
  }
  static void record(const variant& v, const attention_heads& h, const launch& l, recording& r) {
    if (v.kind == attention_kind::f32_tiles)
      return record(v, fatbins::attention_grad_queries_f32, fatbins::attention_grad_keys_f32, h, l, r);
    record(v, fatbins::attention_grad_queries, fatbins::attention_grad_keys, h, l, r);
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::portable> {
  static constexpr bool counts_all_elements = true;
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_heads::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    if (h.B * h.G * h.D * (h.S + h.T) == 0) return;
    if (const auto* v = choose_kernel(attention_grad_portable::variants, attention_work::of(h, l, true), r.considered()).variant)
      return attention_grad_portable::record(*v, h, l, r);
    enter_set(r, kernels::reference::name, rows_refusal(h, l, attention_grad_portable::variants.back().first.shared_bytes));
    kernel<op::attention_grad, P, kernels::reference>::record(l, r);
  }
};

}  // namespace isotope::cuda
