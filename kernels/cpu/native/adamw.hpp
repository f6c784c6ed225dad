#pragma once
/// AdamW in one pass over vectors. Bound by bytes: 28 of a weight, and 2 of one that is rounded to bf16, and 2 of its packed copy.
#include <isotope/kernels/cpu/native/packed_weight.hpp>
#include <isotope/kernels/cpu/native/programs.hpp>
#include <isotope/kernels/cpu/native/row_vectors.hpp>
#include <isotope/kernels/cpu/update.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct adamw {
  static constexpr bool packs = true;

  static void run(const launch& l) {
    const portable::adamw_step step(l);
    if (step.g.type != dtype::f32) return portable::adamw::run(l);  // never of a packed weight: a plan's gradients are f32
    if (step.skipped()) return;
    const float b1 = step.b1, b2 = step.b2, a1 = step.a1, a2 = step.a2, c = step.factor, rate = step.corrected_rate;
    const float correct2 = step.correct2, epsilon = step.epsilon;
    const auto update = [&](std::int64_t i, std::int64_t n, bool decays) {
      float *w = l.out[0].as<float>() + i, *m = l.out[1].as<float>() + i, *v = l.out[2].as<float>() + i;
      const float* g = step.g.as<const float>() + i;
      const float decay = step.decay(decays);
      for_vectors(n, [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA {
        if constexpr (config::has_bf16_tiles) {
          constexpr std::int64_t next = portable::optimizer_step::block;
          portable::fetch(w + j + next, m + j + next, v + j + next, g + j + next);
        }
        const vector x = c * load(g + j, amount), first = b1 * load(m + j, amount) + a1 * x, old = load(w + j, amount);
        const vector second = b2 * load(v + j, amount) + a2 * (x * x), radicand = second * correct2;
        store(m + j, first, amount);
        store(v + j, second, amount);
        store(w + j, old - decay * old - rate * first / (ISOTOPE_SQRT_LANES(radicand) + epsilon), amount);
      });
      step.round(w, i, n);
    };
    const std::int64_t columns = l.attr->i[3];
    if (columns == 0) return step.blocks(l, 0.5, update, [&](std::int64_t, std::int64_t) { step.settle(); });
    const packed_weight copy(l.out[0].dims.count() / columns, columns);
    packed_weight::forget(l.out[4].data);
    const auto pack = [&](std::int64_t first, std::int64_t end) {  // what was updated is in L2
      copy.take(l.out[0].as<const float>() + first, first / columns, end / columns, l.out[4].data, step.streams);
      step.settle();
    };
    step.blocks(l, 0.6, update, pack, larger_of(2, 2 * portable::optimizer_step::task / columns / 2 * 2) * columns);
  }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::adamw, P, kernels::native> : native::adamw {};

}  // namespace isotope::cpu
