#pragma once
/// Attention on matrix units: attention_khr.comp, or the portable kernel where that cannot run.
#include <isotope/kernels/vulkan/attention/matrix.hpp>
#include <isotope/kernels/vulkan/portable/attention.hpp>
#include <isotope/shaders/attention_khr_bf16.hpp>
#include <isotope/shaders/attention_khr_f16.hpp>

namespace isotope::vulkan {

struct attention_khr {
  static const shader& code(dtype t) { return t == dtype::bf16 ? shaders::attention_khr_bf16 : shaders::attention_khr_f16; }
  using variant = attention_matrix_variant<attention_part::y>;
  /// With 64 queries that share each tile of 32 keys, an H200 takes 0.407 ms for (32, 12, 1024, 64). 128 queries and tiles of 64 take 1.05 times as long, 128 and 32
  /// 1.6 times, 64 and 64 1.5 times. Two strips per subgroup would double the registers. Fewer queries are for short heads. For (8, 12, 128, 64) 128 queries and tiles of 64, whose workgroups are one for each
  /// head, take 20.9 to 24.6 us where 64 and 32 take 23.0 to 26.9.
  static constexpr std::array<variant, 6> variants{
      {{4, 1, 2, 127}, {2, 1, 2, 91}, {1, 1, 2, 75}, {8, 1, 4, 121, 140}, {8, 1, 2, 80}, {4, 1, 4, 87}}};

  static attention_matrix_tiles tiles(const attention_heads& h, const launch& l, recording& r) {
    auto w = attention_work::of(h, l, attention_part::y);
    w.side = matrix_side(*l.device, h.q.type);
    return fitting_tiles(variants, w, r.considered());
  }
  static void record(const attention_heads& h, const attention_matrix_tiles& t, const launch& l, recording& r) {
    const auto subgroup = l.device->subgroup;
    const bool biased = h.masked || (!h.causal && h.T % t.columns != 0);
    auto& d = r.add(code(h.q.type), h.specialization(t.subgroups * subgroup, subgroup, true, {t.columns, t.side, t.strips, biased}),
                    h.push(), cover(h.B * h.H * ((h.S + t.rows() - 1) / t.rows()), 1), h.reads(l), {l.out[0], l.out[1]});
    d.subgroup = subgroup;
  }
};

template <class P> struct kernel<op::attention, P, kernels::native> {
  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::forward(l);
    if (h.empty()) return;
    auto why = matrix_refusal(h, l);
    if (why.empty() && !attention_khr::code(h.q.type).there()) why = "the shader compiler of the build lacks matrices of this format";
    if (why.empty()) return attention_khr::record(h, attention_khr::tiles(h, l, r), l, r);
    enter_set(r, kernels::portable::name, why);
    kernel<op::attention, P, kernels::portable>::record(l, r);
  }
};

}  // namespace isotope::vulkan
