#pragma once
/// Bound by exp. As the gradient of cross-entropy, but a row's target may be a column of another device.
#include <isotope/kernels/cpu/portable/cross_entropy.hpp>
#include <isotope/op/cross_entropy_part.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct cross_entropy_part_grad {
  static constexpr std::uint32_t inplace = 1;

  static void run(const launch& l) {
    const auto c = l.constants<op::cross_entropy_part_grad>();
    const std::int64_t N = l.in[0].dims.cols(), V = c.classes, rows = l.in[1].dims.count();
    const auto* targets = l.in[1].as<const std::int32_t>();
    const view& y = l.out[0];
    const float k = share_of_row(l, c.all);
    for_rows(l, rows, double(rows * V) * 0.35, [&](std::int64_t r, int) {
      if (!counts(targets[r], c.all)) return clear(y, r * N, N);
      const std::int64_t own = targets[r] - c.first;
      const bool here = own >= 0 && own < V;
      const float top = l.in[2].as<const float>()[r], sum = l.in[3].as<const float>()[r], factor = k / sum;
      const float hit = here ? k * (math::exp(element(l.in[0], r * N + own) - top) / sum - 1.0f) : 0;
      for_logits(l.in[0], r * N, V, [&](std::int64_t i, const float* x, std::int64_t n) {
        alignas(64) float narrow[logits_block];
        float* d = y.type == dtype::f32 ? y.as<float>() + r * N + i : narrow;
        math::map(n, d, [top, factor](float v) ISOTOPE_INLINE_LAMBDA { return factor * math::exp(v - top); }, x);
        if (y.type != dtype::f32) narrow_run(d, y.data, y.type, r * N + i, n);
      });
      if (here) narrow_run(&hit, y.data, y.type, r * N + own, 1);
      clear(y, r * N + V, N - V);
    });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::cross_entropy_part_grad, P, kernels::portable> : portable::cross_entropy_part_grad {};
}  // namespace isotope::cpu
