#pragma once
/// Attention over cached keys and values: the positions of a query are divided among blocks, whose sums are then added in their order.
#include <isotope/fatbins/attention_cached.hpp>
#include <isotope/kernels/cuda/attention/cached.hpp>
#include <isotope/kernels/cuda/reference/attention_cached.hpp>
#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::attention_cached, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t T = s.in[1][2], D = s.in[1][3];
    std::int64_t parts = 0;
    for (const std::int64_t bytes : {2, 4}) parts = std::max(parts, cached_attention::planned_splits(T, D, bytes));
    if (parts == 1) return 0;
    return 4 * (s.in[0].count() / D) * parts * (D + 2);
  }
  static void record(const launch& l, recording& r) {
    cached_attention c(l);
    if (c.N == 0) return;
    if (const auto why = c.obstacle(); !why.empty()) return portable::fall_through<op::attention_cached, P>(l, r, why);
    c.choose(0, l.scratch_bytes, r.considered());
    const std::int64_t heads = c.N * c.heads, splits = c.splits();
    const range parts(l.scratch, 4 * heads * splits * (c.D + 2));
    gpu::cached_heads a = c.arguments();
    a.parts = l.scratch;
    r.add(fatbins::attention_cached, c.function(functions), a, c.blocks(), {c.q, c.keys, c.values, c.sequence, c.position},
          {splits == 1 ? range(c.y) : parts})
        .starts_early = true;
    if (splits == 1) return;
    r.add(fatbins::attention_cached, c.keys.type == dtype::f32 ? "attention_cached_finish_f32" : "attention_cached_finish_bf16", a,
          per_item(heads * c.D), {parts}, {c.y})
        .starts_early = true;
  }

 private:
  static constexpr cached_attention::functions functions{{{{},
                                                           {"attention_cached_f32_8_1", "attention_cached_f32_8_4"},
                                                           {"attention_cached_f32_16_1", "attention_cached_f32_16_4"},
                                                           {"attention_cached_f32_32_1", "attention_cached_f32_32_4"}}},
                                                         {{{"attention_cached_bf16_4_1", "attention_cached_bf16_4_4"},
                                                           {"attention_cached_bf16_8_1", "attention_cached_bf16_8_4"},
                                                           {"attention_cached_bf16_16_1", "attention_cached_bf16_16_4"},
                                                           {"attention_cached_bf16_32_1", "attention_cached_bf16_32_4"}}}};
};

}  // namespace isotope::cuda
