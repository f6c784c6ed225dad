#pragma once
/// Attention of packed sequences on matrix units: attention_khr.comp, whose workgroups each find a sequence, or the portable kernel where that cannot run.
#include <isotope/kernels/vulkan/native/attention.hpp>
#include <isotope/kernels/vulkan/portable/attention_packed.hpp>
#include <isotope/shaders/attention_khr_packed_bf16.hpp>
#include <isotope/shaders/attention_khr_packed_f16.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::attention_packed, P, kernels::native> {
  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const auto h = attention_heads::of_packed(l);
    const shader& code = h.q.type == dtype::bf16 ? shaders::attention_khr_packed_bf16 : shaders::attention_khr_packed_f16;
    auto why = matrix_refusal(h, l);
    if (why.empty() && !code.there()) why = "the shader compiler of the build lacks matrices of this format";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention_packed, P, kernels::portable>::record(l, r);
    }
    // As attention_khr, for any number of rows, so that the bits of a sequence do not depend on the others. Where queries see later keys, keys behind the sequence
    // are marked.
    const auto side = matrix_side(*l.device, h.q.type);
    auto w = attention_work::of_packed(h, l, 4 * side);
    w.side = side;
    const auto t = fitting_tiles(attention_khr::variants, w, r.considered());
    const auto subgroup = l.device->subgroup;
    r.add(code, h.specialization(t.subgroups * subgroup, subgroup, true, {t.columns, t.side, t.strips, !h.causal}), h.push(),
          h.packed_groups(t.rows()), {l.in.begin(), l.in.end()}, {l.out[0]})
        .subgroup = subgroup;
  }
};

}  // namespace isotope::vulkan
