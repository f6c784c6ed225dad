#pragma once
/// The first and the last step of a Muon update, each one pass over a matrix; bound by bytes.
#include <isotope/kernels/cpu/portable/update.hpp>
#include <isotope/op/muon.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct momentum {
  static void run(const launch& l) {
    const optimizer_step step(l);
    const view& g = l.in[1];
    const float momentum = l.scalars->momentum, c = step.factor;
    const bool skipped = step.skipped();
    const auto update = [&](std::int64_t i, std::int64_t n, bool) {
      alignas(64) float buffer[optimizer_step::block];
      float *m = l.out[0].as<float>() + i, *u = l.out[1].as<float>() + i;
      if (skipped) {
        for (std::int64_t j = 0; j < n; ++j) u[j] = 0;
        return;
      }
      const float* gradient = g.as<const float>() + i;
      if (g.type != dtype::f32) {
        widen_run(g.data, g.type, i, 1, buffer, n);
        gradient = buffer;
      }
      ISOTOPE_IVDEP
      for (std::int64_t j = 0; j < n; ++j) {
        const float x = c * gradient[j];
        m[j] = momentum * m[j] + x;
        u[j] = x + momentum * m[j];
      }
    };
    step.blocks(l, 0.4, update, [] {});
  }
};

struct muon {
  /// Updates elements [i, i + n) of the weights and of their bf16 shadow.
  static void update(const launch& l, const optimizer_step& step, std::int64_t i, std::int64_t n, bool decays) {
    alignas(64) float buffer[optimizer_step::block];
    const view& x = l.in[l.in.size() - 3];
    float* w = l.out[0].as<float>() + i;
    const float* direction = x.as<const float>() + i;
    if (x.type != dtype::f32) {
      widen_run(x.data, x.type, i, 1, buffer, n);
      direction = buffer;
    }
    const float decay = decays ? step.rate * l.scalars->weight_decay : 0.0f,
                rate = step.rate * float(l.constants<op::muon>().direction_scale);
    ISOTOPE_IVDEP
    for (std::int64_t j = 0; j < n; ++j) w[j] = w[j] - decay * w[j] - rate * direction[j];
    if (l.constants<op::muon>().shadow) narrow_run(w, l.out[1].data, l.out[1].type, i, n);
  }
  static void run(const launch& l) {
    const optimizer_step step(l);
    if (step.skipped()) return;
    step.blocks(l, 0.3, [&](std::int64_t i, std::int64_t n, bool decays) { update(l, step, i, n, decays); }, [] {});
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::momentum, P, kernels::portable> : portable::momentum {};
template <VectorProgram P> struct kernel<op::muon, P, kernels::portable> : portable::muon {};
}  // namespace isotope::cpu
