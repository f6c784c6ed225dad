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
    const std::int64_t decays = l.attr->i[0], all = l.out[0].dims.count();
    if (columns % (2 * lanes) == 0 && (decays == 0 || decays == all) && step.streams) {
      const float decay = step.decay(decays != 0);
      constexpr std::int64_t rows = 2;
      portable::for_tasks(l, all / columns / rows, double(all) * 0.5, [&](std::int64_t t, int) {
        exponents found;
        const std::int64_t k = t * rows, i0 = k * columns;
        float *w = l.out[0].as<float>() + i0, *m = l.out[1].as<float>() + i0, *v = l.out[2].as<float>() + i0;
        const float* g = step.g.as<const float>() + i0;
        bfloat16* shadow = l.out[3].as<bfloat16>() + i0;
        float* packed = l.out[4].as<float>();
        const auto updated = [&](std::int64_t j) ISOTOPE_INLINE_LAMBDA {
          constexpr whole_vector amount{};
          constexpr std::int64_t next = 512;
          portable::fetch(w + j + next, m + j + next, v + j + next, g + j + next);
          const vector x = c * load(g + j, amount), first = b1 * load(m + j, amount) + a1 * x, old = load(w + j, amount);
          const vector second = b2 * load(v + j, amount) + a2 * (x * x), radicand = second * correct2;
          store(m + j, first, amount);
          store(v + j, second, amount);
          const vector y = old - decay * old - rate * first / (ISOTOPE_SQRT_LANES(radicand) + epsilon);
          store(w + j, y, amount);
          return rounded(y);
        };
        for (std::int64_t j = 0; j < columns; j += 2 * lanes) {
          rounded_vector r[2][2];
          for (int row = 0; row < 2; ++row)
            for (int part = 0; part < 2; ++part) r[row][part] = updated(row * columns + j + part * lanes);
          for (int row = 0; row < 2; ++row) {
            vector both;
            __builtin_memcpy(&both, r[row], sizeof both);
            ISOTOPE_STREAM_LANES(shadow + row * columns + j, both);
          }
          float* to = packed + copy.at(k, j);
          for (int part = 0; part < 2; ++part) {
            const words pairs = interleave(r[0][part], r[1][part]);
            found.take(pairs);
            vector x;
            __builtin_memcpy(&x, &pairs, sizeof x);
            ISOTOPE_STREAM_LANES(to + part * lanes, x);
          }
        }
        packed_weight::note(packed, found);
        step.settle();
      });
      if (const std::int64_t last = all / columns / 2 * 2 * columns; last < all) {
        for (std::int64_t i = last; i < all; i += 512) update(i, smaller(512, all - i), decays != 0);
        pack(last, all);
      }
      return;
    }
    step.blocks(l, 0.6, update, pack, larger_of(2, 2 * portable::optimizer_step::task / columns / 2 * 2) * columns);
  }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::adamw, P, kernels::native> : native::adamw {};

}  // namespace isotope::cpu
