#pragma once
/// Attention over cached keys and values on Hopper, in one launch: a block on each multiprocessor walks over rows and heads, and reads caches before the launch
/// before it has ended; or, of long caches, f32 and several query heads of a key-value head, the blocks of a cluster divide the positions of a query.
#include <isotope/fatbins/attention_cached_hopper.hpp>
#include <isotope/kernels/cuda/portable/attention_cached.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::attention_cached, P, kernels::native> {
  using below = kernel<op::attention_cached, P, kernels::portable>;
  static constexpr std::int64_t scratch(const step_shapes& s) { return below::scratch(s); }
  static void record(const launch& l, recording& r) {
    cached_attention c(l);
    if (c.N == 0) return;
    auto why = c.obstacle();
    if (why.empty() && l.device->compute != 90) why = "the device does not have the instructions of compute capability 9.0";
    if (why.empty() && !fatbins::attention_cached_hopper.there()) why = "this build has no code for Hopper";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return below::record(l, r);
    }
    c.choose(l.device->multiprocessors, 0, r.considered());
    grid blocks = c.variant.copies ? c.walking_blocks(l.device->multiprocessors) : c.blocks();
    blocks.cluster = std::uint32_t(c.splits());
    auto& d = r.add(fatbins::attention_cached_hopper, c.function(functions), c.arguments(), blocks,
                    {c.q, c.keys, c.values, c.sequence, c.position}, {c.y});
    d.starts_early = true;
    d.early = {c.sequence, c.position};
    if (c.variant.copies) d.early.insert(d.early.end(), {c.keys, c.values});
  }

 private:
  static constexpr cached_attention::functions functions{{{{},
                                                           {"attention_cached_hopper_f32_8_1", "attention_cached_hopper_f32_8_4"},
                                                           {"attention_cached_hopper_f32_16_1", "attention_cached_hopper_f32_16_4"},
                                                           {"attention_cached_hopper_f32_32_1", "attention_cached_hopper_f32_32_4"}}},
                                                         {{{"attention_cached_hopper_bf16_4_1", "attention_cached_hopper_bf16_4_4"},
                                                           {"attention_cached_hopper_bf16_8_1", "attention_cached_hopper_bf16_8_4"},
                                                           {"attention_cached_hopper_bf16_16_1", "attention_cached_hopper_bf16_16_4"},
                                                           {"attention_cached_hopper_bf16_32_1", "attention_cached_hopper_bf16_32_4"}}},
                                                         {"attention_cached_copies_bf16_4_1", "attention_cached_copies_bf16_8_1",
                                                          "attention_cached_copies_bf16_16_1", "attention_cached_copies_bf16_32_1"}};
};

}  // namespace isotope::cuda
