#pragma once
/// The gradient of attention on matrix units: attention_grad_khr_keys.comp and attention_grad_khr_queries.comp, or the portable kernels.
#include <isotope/kernels/vulkan/attention/matrix.hpp>
#include <isotope/kernels/vulkan/portable/attention_grad.hpp>
#include <isotope/shaders/attention_grad_khr_keys_bf16.hpp>
#include <isotope/shaders/attention_grad_khr_keys_f16.hpp>
#include <isotope/shaders/attention_grad_khr_queries_bf16.hpp>
#include <isotope/shaders/attention_grad_khr_queries_f16.hpp>

namespace isotope::vulkan {

struct attention_grad_khr {
  static const shader& keys_code(dtype t) {
    return t == dtype::bf16 ? shaders::attention_grad_khr_keys_bf16 : shaders::attention_grad_khr_keys_f16;
  }
  static const shader& queries_code(dtype t) {
    return t == dtype::bf16 ? shaders::attention_grad_khr_queries_bf16 : shaders::attention_grad_khr_queries_f16;
  }
  /// 64 keys share each tile of 32 queries: small enough for several workgroups per multiprocessor, which hide each other's barriers. An H200 takes 0.763 ms for
  /// (32, 12, 1024, 64).
  static constexpr std::array<attention_matrix_variant<attention_part::keys>, 6> keys_variants{
      {{4, 1, 2, 135}, {2, 1, 2, 97}, {1, 1, 2, 80}, {8, 1, 4, 123}, {8, 1, 2, 124}, {4, 1, 4, 102}}};
  /// 64 queries share each tile of 32 keys: 0.420 ms. Of (8, 12, 128, 64), 128 queries that share tiles of 64 take 2 to 4 us less.
  static constexpr std::array<attention_matrix_variant<attention_part::queries>, 6> queries_variants{
      {{4, 1, 2, 184}, {2, 1, 2, 132}, {1, 1, 2, 109}, {8, 1, 4, 164, 200}, {8, 1, 2, 141}, {4, 1, 4, 107}}};

  template <attention_part Part>
  static attention_matrix_tiles tiles(const std::array<attention_matrix_variant<Part>, 6>& all, const attention_heads& h, const launch& l,
                                      recording& r) {
    auto w = attention_work::of(h, l, Part);
    w.side = matrix_side(*l.device, h.q.type);
    return fitting_tiles(all, w, r.considered());
  }
  static void record_keys(const attention_heads& h, const attention_matrix_tiles& t, const launch& l, recording& r) {
    const auto subgroup = l.device->subgroup;
    auto& d =
        r.add(keys_code(h.q.type), h.specialization(t.subgroups * subgroup, subgroup, true, {t.columns, t.side, 1, h.masked}), h.push(),
              cover(h.B * h.G * ((h.T + t.rows() - 1) / t.rows()), 1), attention_grad_reads(h, l), attention_grad_keys_written(h, l));
    d.subgroup = subgroup;
  }
  static void record_queries(const attention_heads& h, const attention_matrix_tiles& t, const launch& l, recording& r) {
    const auto subgroup = l.device->subgroup;
    const bool biased = h.masked || (!h.causal && h.T % t.columns != 0);
    auto& d = r.add(queries_code(h.q.type), h.specialization(t.subgroups * subgroup, subgroup, true, {t.columns, t.side, 1, biased}),
                    h.push(), cover(h.B * h.H * ((h.S + t.rows() - 1) / t.rows()), 1), attention_grad_reads(h, l), {l.out[0]});
    d.subgroup = subgroup;
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::native> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return attention_delta::scratch(s); }

  static void record(const launch& l, recording& r) {
    const auto h = attention_heads::gradient(l);
    auto why = matrix_refusal(h, l);
    using khr = attention_grad_khr;
    if (why.empty() && (!khr::keys_code(h.q.type).there() || !khr::queries_code(h.q.type).there()))
      why = "the shader compiler of the build lacks matrices of this format";
    if (why.empty() && h.empty()) why = "there are no queries";
    if (!why.empty()) {
      enter_set(r, kernels::portable::name, why);
      return kernel<op::attention_grad, P, kernels::portable>::record(l, r);
    }
    attention_delta::record(h, l, r);
    khr::record_keys(h, khr::tiles(khr::keys_variants, h, l, r), l, r);
    khr::record_queries(h, khr::tiles(khr::queries_variants, h, l, r), l, r);
  }
};

}  // namespace isotope::vulkan
