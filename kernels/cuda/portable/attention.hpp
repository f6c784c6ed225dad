#pragma once
/// Attention in f32 on any device, by attention_f32.cu, or by attention.cu where the former does not take the operands or is slower.
#include <isotope/fatbins/attention.hpp>
#include <isotope/fatbins/attention_f32.hpp>
#include <isotope/kernels/cuda/attention/variants.hpp>
#include <isotope/kernels/cuda/reference/attention.hpp>

#include "attention_f32.hpp"
#include "attention_rows.hpp"

namespace isotope::cuda {

/// Makes the variants from the tiles that device code was compiled for.
struct attention_portable_tiles {
  using variant = attention_variant<false>;

  template <int D> static constexpr variant of_f32_tiles(std::string_view function) {
    constexpr auto t = gpu::f32_forward_tile<D>::value;
    return {attention_kind::f32_tiles, D, {function, function, t.own(), t.threads(), t.forward_bytes()}, {}, 24};
  }
  /// Blocks of few rows: half as fast in tiles of 64, so f32 tiles are chosen where queries and keys are more than 32.
  template <int D> static constexpr variant of_rows(std::string_view function) {
    constexpr auto t = gpu::forward_rows<D>::value;
    return {attention_kind::rows, D, {function, function, t.own, t.threads, t.forward_bytes()}, {}, 24 * rows_speed};
  }
};

struct attention_portable : attention_portable_tiles {
  static constexpr std::array<variant, 8> variants{of_f32_tiles<32>("attention_f32_32"), of_f32_tiles<64>("attention_f32_64"),
                                                   of_f32_tiles<96>("attention_f32_96"), of_f32_tiles<128>("attention_f32_128"),
                                                   of_rows<32>("attention_32"),          of_rows<64>("attention_64"),
                                                   of_rows<128>("attention_128"),        of_rows<256>("attention_256")};

  static dispatch& record(const variant& v, const device_code& code, const attention_heads& h, const launch& l, recording& r) {
    return r.add(code, v.first.function(h), h.arguments,
                 per_block(h.query_blocks(v.first.own), std::uint32_t(v.first.threads), v.first.shared_bytes), h.reads(l),
                 {l.out[0], l.out[1]});
  }
  static void record(const variant& v, const attention_heads& h, const launch& l, recording& r) {
    record(v, v.kind == attention_kind::f32_tiles ? fatbins::attention_f32 : fatbins::attention, h, l, r);
  }
};

template <class P> struct kernel<op::attention, P, kernels::portable> {
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    if (const auto* v = choose_kernel(attention_portable::variants, attention_work::of(h, l, false), r.considered()).variant)
      return attention_portable::record(*v, h, l, r);
    enter_set(r, kernels::reference::name, rows_refusal(h, l, attention_portable::variants.back().first.shared_bytes));
    kernel<op::attention, P, kernels::reference>::record(l, r);
  }
};

}  // namespace isotope::cuda
