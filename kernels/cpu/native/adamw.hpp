#pragma once
/// AdamW in one pass over vectors. Bound by bytes: 28 per weight, 2 for its bf16 copy, and 2 for its packed copy.
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/gemm/packed_weight.hpp>
#include <isotope/kernels/cpu/native/rows/row_vectors.hpp>
#include <isotope/kernels/cpu/portable/update.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The arrays of a launch, from one element on.
struct adamw_numbers {
  float *w, *m, *v;
  const float* g;
  adamw_numbers(const launch& l, const view& gradient, std::int64_t i)
      : w(l.out[0].as<float>() + i), m(l.out[1].as<float>() + i), v(l.out[2].as<float>() + i), g(gradient.as<const float>() + i) {}
};
/// The formula, with the values of a step in registers.
class adamw_formula {
 public:
  explicit adamw_formula(const portable::adamw_step& s)
      : b1_(s.b1), b2_(s.b2), a1_(s.a1), a2_(s.a2), c_(s.factor), rate_(s.corrected_rate), correct2_(s.correct2), epsilon_(s.epsilon) {}
  /// Updates a vector or a part of one and returns the weights.
  template <class Amount> ISOTOPE_INLINE vector update(const adamw_numbers& x, std::int64_t j, float decay, Amount amount) const {
    if constexpr (config::has_bf16_tiles) {
      const std::int64_t next = j + portable::optimizer_step::block;
      portable::fetch(x.w + next, x.m + next, x.v + next, x.g + next);
    }
    const vector g = c_ * load(x.g + j, amount), first = b1_ * load(x.m + j, amount) + a1_ * g, old = load(x.w + j, amount);
    const vector second = b2_ * load(x.v + j, amount) + a2_ * (g * g), radicand = second * correct2_;
    const vector w = old - decay * old - rate_ * first / (isa::sqrt_lanes(radicand) + epsilon_);
    store(x.m + j, first, amount);
    store(x.v + j, second, amount);
    store(x.w + j, w, amount);
    return w;
  }
  /// Updates elements [i, i + n) and stores them rounded.
  void update(const launch& l, const portable::adamw_step& step, std::int64_t i, std::int64_t n, bool decays) const {
    const adamw_numbers x(l, step.g, i);
    const float decay = step.decay(decays);
    for_vectors(n, [&](std::int64_t j, auto amount) ISOTOPE_INLINE_LAMBDA { update(x, j, decay, amount); });
    step.round(x.w, i, n);
  }

 private:
  float b1_, b2_, a1_, a2_, c_, rate_, correct2_, epsilon_;
};

/// Updates one weight with its packed copy, two rows at a time, so that values are rounded and packed while in registers.
class packed_adamw {
 public:
  packed_adamw(const launch& l, const portable::adamw_step& step)
      : l_(l),
        step_(step),
        formula_(step),
        columns_(l.constants<op::adamw>().columns),
        rows_(l.out[0].dims.count() / columns_),
        copy_(rows_, columns_),
        past_caches_(step.streams && aligned(l.out[3].data) && aligned(l.out[4].data)) {}

  void run() const {
    packed_weight::forget(l_.out[4].data);
    const std::int64_t some = larger_of(2, portable::optimizer_step::task / columns_ / 2 * 2);
    portable::for_tasks(l_, divide_up(rows_, some), double(rows_) * double(columns_) * 0.5, [&](std::int64_t t, int) {
      exponents found;
      const std::int64_t end = smaller(rows_, (t + 1) * some);
      for (std::int64_t k = t * some; k < end; k += 2) update(k, smaller(k + 2, end), found);
      packed_weight::note(l_.out[4].data, found);
      step_.settle();
    });
  }

 private:
  const launch& l_;
  const portable::adamw_step& step_;
  adamw_formula formula_;
  std::int64_t columns_, rows_;
  packed_weight copy_;
  bool past_caches_;

  static bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % config::vector_bytes == 0; }

  /// Updates rows k and k + 1, or the last one.
  void update(std::int64_t k, std::int64_t end, exponents& found) const {
    const std::int64_t first = k * columns_, n = (end - k) * columns_, decaying = l_.constants<op::adamw>().decaying;
    if (end - k == 2 && columns_ % blocking::cols == 0 && (first >= decaying || first + n <= decaying))
      return update_two(k, step_.decay(first < decaying), found);
    step_.each_block(l_, first, first + n,
                     [&](std::int64_t i, std::int64_t some, bool decays) { formula_.update(l_, step_, i, some, decays); });
    copy_.take(l_.out[0].as<const float>() + first, k, end, l_.out[4].data, past_caches_, found);
  }
  void update_two(std::int64_t k, float decay, exponents& found) const {
    const adamw_numbers row[2] = {{l_, step_.g, k * columns_}, {l_, step_.g, (k + 1) * columns_}};
    bfloat16* const shadow = l_.out[3].as<bfloat16>() + k * columns_;
    bfloat16* const packed = l_.out[4].as<bfloat16>();
    for (std::int64_t j = 0; j < columns_; j += blocking::cols) {
      rounded_vector y[2][blocking::vectors];
      for (int r = 0; r < 2; ++r)
        for (int v = 0; v < int(blocking::vectors); ++v) y[r][v] = rounded(formula_.update(row[r], j + v * lanes, decay, whole_vector{}));
      for (int r = 0; r < 2; ++r) {
        static_assert(sizeof y[r] == sizeof(words));
        words both;
        __builtin_memcpy(&both, y[r], sizeof both);
        packed_weight::put(both, shadow + r * columns_ + j, past_caches_);
      }
      for (int v = 0; v < int(blocking::vectors); ++v) {
        const words pairs = interleave(y[0][v], y[1][v]);
        found.take(pairs);
        packed_weight::put(pairs, packed + 2 * (copy_.at(k, j) + v * lanes), past_caches_);
      }
    }
  }
};

struct adamw {
  static constexpr bool packs = true;

  static void run(const launch& l) {
    const portable::adamw_step step(l);
    if (step.g.type != dtype::f32) return portable::adamw::run(l);  // such a weight is never packed: a plan's gradients are f32
    if (step.skipped()) return;
    if (l.constants<op::adamw>().columns != 0) return packed_adamw(l, step).run();
    const adamw_formula formula(step);
    const auto update = [&](std::int64_t i, std::int64_t n, bool decays) { formula.update(l, step, i, n, decays); };
    step.blocks(l, 0.5, update, [&] { step.settle(); });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::adamw, P, kernels::native> : native::adamw {};
}  // namespace isotope::cpu
