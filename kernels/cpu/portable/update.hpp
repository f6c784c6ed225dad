#pragma once
/// Accumulation, the gradient norm and the optimisers: one pass over the region each, bound by bytes.
///
/// The norm prefetches what it reads next, which saves a third of its time on Zen 5 (bench/CPU.md).
#include <cmath>
#include <limits>

#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/sqrt.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

inline constexpr std::int64_t line = 16;  // f32 of a cache line
/// Prefetches the cache lines of x[0], ...
template <class... T> ISOTOPE_INLINE void fetch(const T*... x) { (__builtin_prefetch(x), ...); }

inline constexpr std::int64_t more_than_caches = 1 << 25;  // elements of a region that L3 mostly does not hold after it was written
/// y[i] = x[i] rounded to bf16, i < n, by streaming stores: for data that is evicted before anybody reads it.
inline void stream_rounded(const float* x, bfloat16* y, std::int64_t n) {
  constexpr std::int64_t count = config::vector_bytes / 2, block = 512;
  if (!config::has_streams || n > block || n % count != 0 || reinterpret_cast<std::uintptr_t>(y) % config::vector_bytes != 0)
    return math::convert(x, y, n);
  alignas(64) std::uint16_t some[block];
  math::convert(x, reinterpret_cast<bfloat16*>(some), n);
  for (std::int64_t i = 0; i < n; i += count) {
    math::lanes<float> v;
    std::memcpy(&v, some + i, sizeof v);
    isa::stream_lanes(y + i, v);
  }
}

struct accumulate {
  static constexpr std::int64_t task = 1 << 14, piece = 1024;

  static void run(const launch& l) {
    const view &into = l.out[0], &x = l.in[1];
    const std::int64_t n = into.dims.count();
    const merged_axes axes(into.dims, {&l.in[1], 1});
    const bool add = (l.accumulate & 1u) != 0, lies = x.type == dtype::f32 && axes.one_run(0);
    for_tasks(l, divide_up(n, task), double(n) * 0.2, [&](std::int64_t t, int) {
      alignas(64) float buffer[piece], old[piece];
      const std::int64_t end = smaller(n, (t + 1) * task);
      for (std::int64_t i = t * task; i < end; i += piece) {
        const std::int64_t some = smaller(piece, end - i);
        const float* from = buffer;
        if (lies) {
          from = x.as<const float>() + i;
        } else {
          axes.runs(0, i, some, [&](std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t length) {
            widen_run(x.data, x.type, offset, stride, buffer + at, length);
          });
        }
        if (!add) {
          narrow_run(from, into.data, into.type, i, some);
        } else if (into.type == dtype::f32) {
          float* y = into.as<float>() + i;
          ISOTOPE_IVDEP
          for (std::int64_t j = 0; j < some; ++j) y[j] += from[j];
        } else {
          widen_run(into.data, into.type, i, 1, old, some);
          for (std::int64_t j = 0; j < some; ++j) old[j] += from[j];
          narrow_run(old, into.data, into.type, i, some);
        }
      }
    });
  }
};

/// Sums of squares in f64, in blocks of 16384 elements whose sums are added in order.
struct square_sums {
  static constexpr std::int64_t task = 1 << 14;
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * divide_up(s.in[0].count(), task); }

  static double run(const launch& l) {
    const view& x = l.in[0];
    const std::int64_t n = x.dims.count(), tasks = divide_up(n, task);
    auto* partial = static_cast<double*>(l.scratch);
    for_tasks(l, tasks, double(n) * 0.25, [&](std::int64_t t, int) {
      constexpr std::int64_t block = 512;
      alignas(64) float buffer[block];
      double sum[width] = {};
      const std::int64_t end = smaller(n, (t + 1) * task);
      for (std::int64_t first = t * task; first < end; first += block) {
        const std::int64_t some = smaller(block, end - first), whole = some / width * width;
        const float* g = x.type == dtype::f32 ? x.as<const float>() + first : buffer;
        if (g == buffer) widen_run(x.data, x.type, first, 1, buffer, some);
        add_squares(g, whole, sum);
        for (std::int64_t j = 0; whole + j < some; ++j) sum[j] += double(g[whole + j]) * double(g[whole + j]);
      }
      for (int half = width / 2; half > 0; half /= 2)
        for (int j = 0; j < half; ++j) sum[j] += sum[j + half];
      partial[t] = sum[0];
    });
    double total = 0;
    for (std::int64_t t = 0; t < tasks; ++t) total += partial[t];
    return total;
  }

 private:
  static constexpr int width = 32;

  /// sum[j] += g[j]^2 + g[j + width]^2 + ... over n elements, a multiple of width. Bound by bytes. Written with vectors, because g++ compiles the
  /// plain loop to code half as fast. Squares of f32 are exact in f64, so a fused multiply-add gives the same bits.
  static void add_squares(const float* g, std::int64_t n, double (&sum)[width]) {
    constexpr int count = math::lanes_of<double>::count, parts = width / count;
    using narrow __attribute__((vector_size(config::vector_bytes / 2))) = float;
    math::lanes<double> part[parts];
    std::memcpy(part, sum, sizeof part);
    for (std::int64_t i = 0; i < n; i += width) {
      fetch(g + i + 1024, g + i + 1024 + line);
      math::unrolled(std::make_index_sequence<parts>{}, [&](auto p) ISOTOPE_INLINE_LAMBDA {
        narrow x;
        std::memcpy(&x, g + i + std::int64_t(p) * count, sizeof x);
        const auto wide = __builtin_convertvector(x, math::lanes<double>);
        part[p] += wide * wide;
      });
    }
    std::memcpy(sum, part, sizeof part);
  }
};

struct global_norm {
  static constexpr std::int64_t scratch(const step_shapes& s) { return square_sums::scratch(s); }
  static void run(const launch& l) { *l.out[0].as<float>() = float(std::sqrt(square_sums::run(l)) * double(l.scalars->gradient_scale)); }
};

/// g[i] = f(g[i]), in place.
template <class F> void rewrite(const launch& l, const F& f) {
  constexpr std::int64_t task = 1 << 14, block = 512;
  const view& g = l.out[0];
  const std::int64_t n = g.dims.count();
  for_tasks(l, divide_up(n, task), double(n) * 0.15, [&](std::int64_t t, int) {
    alignas(64) float buffer[block];
    const std::int64_t end = smaller(n, (t + 1) * task);
    for (std::int64_t i = t * task; i < end; i += block) {
      const std::int64_t some = smaller(block, end - i);
      widen_run(g.data, g.type, i, 1, buffer, some);
      math::map(some, buffer, f, buffer);
      narrow_run(buffer, g.data, g.type, i, some);
    }
  });
}

struct clip_value {
  static void run(const launch& l) {
    if (!(l.scalars->clip_value > 0)) return;
    const float c = l.scalars->clip_value / l.scalars->gradient_scale;
    rewrite(l, [c](float g) ISOTOPE_INLINE_LAMBDA { return g < -c ? -c : g > c ? c : g; });
  }
};

struct clip_norm {
  static constexpr std::int64_t scratch(const step_shapes& s) { return square_sums::scratch(s); }
  static void run(const launch& l) {
    const double c = double(l.scalars->clip_norm);
    if (!(c > 0)) return;
    const double factor = c / (std::sqrt(square_sums::run(l)) * double(l.scalars->gradient_scale) + 1e-6);
    if (factor < 1) rewrite(l, [k = float(factor)](float g) ISOTOPE_INLINE_LAMBDA { return g * k; });
  }
};

/// What the optimisers share: when a step is skipped, the clipping factor, and which part of the region decays.
struct optimizer_step {
  static constexpr std::int64_t task = 1 << 13, block = 512;
  float norm, loss, factor, rate;
  explicit optimizer_step(const launch& l)
      : norm(scalar(l.in[l.in.size() - 2])),
        loss(scalar(l.in[l.in.size() - 1])),
        factor(l.scalars->gradient_scale),
        rate(l.scalars->learning_rate * float(l.constants<op::update_rule>().rate_scale)) {
    const float share = l.scalars->clip_norm / (norm + 1e-6f);
    if (l.constants<op::update_rule>().clips && l.scalars->clip_norm > 0 && share < 1) factor *= share;
  }
  bool skipped() const { return !std::isfinite(norm) || !std::isfinite(loss); }

  /// Calls update(first, n, decays) for blocks of at most 512 elements of [first, end), each of which decays as a whole or not at all.
  template <class F> void each_block(const launch& l, std::int64_t first, std::int64_t end, const F& update) const {
    const std::int64_t decays = l.constants<op::update_rule>().decaying;
    for (std::int64_t i = first; i < end;) {
      const std::int64_t limit = i < decays ? smaller(end, decays) : end, some = smaller(block, limit - i);
      update(i, some, i < decays);
      i += some;
    }
  }
  /// The same for all elements. settle() runs after each task, on the same thread.
  template <class F, class G> void blocks(const launch& l, double nsec, const F& update, const G& settle) const {
    const std::int64_t n = l.out[0].dims.count();
    for_tasks(l, divide_up(n, task), double(n) * nsec, [&](std::int64_t t, int) {
      each_block(l, t * task, smaller(n, (t + 1) * task), update);
      settle();
    });
  }
};

/// The values that AdamW computes once per step, and the operands that differ with the precision.
struct adamw_step : optimizer_step {
  float b1, b2, a1, a2, epsilon, weight_decay, correct2, corrected_rate;
  const view& g;
  const view* shadow;  // the weights rounded to bf16, or null
  bool streams;
  explicit adamw_step(const launch& l)
      : optimizer_step(l),
        b1(float(l.scalars->beta1)),
        b2(float(l.scalars->beta2)),
        a1(float(1.0 - l.scalars->beta1)),
        a2(float(1.0 - l.scalars->beta2)),
        epsilon(l.scalars->epsilon),
        weight_decay(l.scalars->weight_decay),
        correct2(float(1.0 / (1.0 - std::pow(l.scalars->beta2, double(l.scalars->optimizer_step))))),
        corrected_rate(float(double(rate) / (1.0 - std::pow(l.scalars->beta1, double(l.scalars->optimizer_step))))),
        g(l.in[l.in.size() - 3]),
        shadow(l.constants<op::update_rule>().shadow ? &l.out[3] : nullptr),
        streams(shadow != nullptr && shadow->type == dtype::bf16 &&
                larger_of(shadow->dims.count(), l.constants<op::update_rule>().written) > more_than_caches) {}

  /// A weight loses `decay` times its value. A factor 1 - decay would not do: its rounding error accumulates over the steps.
  float decay(bool decays) const { return decays ? rate * weight_decay : 0.0f; }
  /// Stores elements [i, i + n) of the rounded weights.
  void round(const float* w, std::int64_t i, std::int64_t n) const {
    if (streams) stream_rounded(w, shadow->as<bfloat16>() + i, n);
    else if (shadow != nullptr) narrow_run(w, shadow->data, shadow->type, i, n);
  }
  /// Fences the streaming stores of this thread; no other fence or lock orders them.
  void settle() const {
    if (streams) isa::fence_streams();
  }
};

struct adamw {
  static void run(const launch& l) {
    const adamw_step step(l);
    if (step.skipped()) return;
    const float b1 = step.b1, b2 = step.b2, a1 = step.a1, a2 = step.a2, c = step.factor, rate = step.corrected_rate;
    const float correct2 = step.correct2, epsilon = step.epsilon;
    const auto update = [&](std::int64_t i, std::int64_t n, bool decays) {
      alignas(64) float root[optimizer_step::block], buffer[optimizer_step::block];
      float *w = l.out[0].as<float>() + i, *m = l.out[1].as<float>() + i, *v = l.out[2].as<float>() + i;
      const float* gradient = step.g.as<const float>() + i;
      if (step.g.type != dtype::f32) {
        widen_run(step.g.data, step.g.type, i, 1, buffer, n);
        gradient = buffer;
      }
      const float decay = step.decay(decays);
      ISOTOPE_IVDEP
      for (std::int64_t j = 0; j < n; ++j) {
        const float x = c * gradient[j];
        m[j] = b1 * m[j] + a1 * x;
        v[j] = b2 * v[j] + a2 * (x * x);
        root[j] = v[j] * correct2;
      }
      math::sqrt(root, root, n);
      ISOTOPE_IVDEP
      for (std::int64_t j = 0; j < n; ++j) w[j] = w[j] - decay * w[j] - rate * m[j] / (root[j] + epsilon);
      step.round(w, i, n);
    };
    step.blocks(l, 0.6, update, [&] { step.settle(); });
  }
};

struct sgd {
  static void run(const launch& l) {
    const optimizer_step step(l);
    if (step.skipped()) return;
    const step_scalars& s = *l.scalars;
    const bool has_shadow = l.constants<op::update_rule>().shadow;
    const view& g = l.in[l.in.size() - 3];
    const auto update = [&](std::int64_t i, std::int64_t n, bool decays) {
      alignas(64) float buffer[optimizer_step::block];
      float *w = l.out[0].as<float>() + i, *m = l.out[1].as<float>() + i;
      const float* gradient = g.as<const float>() + i;
      if (g.type != dtype::f32) {
        widen_run(g.data, g.type, i, 1, buffer, n);
        gradient = buffer;
      }
      const float decay = decays ? s.weight_decay : 0.0f, momentum = s.momentum, rate = step.rate, c = step.factor;
      ISOTOPE_IVDEP
      for (std::int64_t j = 0; j < n; ++j) {
        m[j] = momentum * m[j] + c * gradient[j] + decay * w[j];
        w[j] -= rate * m[j];
      }
      if (has_shadow) narrow_run(w, l.out[2].data, l.out[2].type, i, n);
    };
    step.blocks(l, 0.4, update, [] {});
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::accumulate, P, kernels::portable> : portable::accumulate {};
template <VectorProgram P> struct kernel<op::global_norm, P, kernels::portable> : portable::global_norm {};
template <VectorProgram P> struct kernel<op::clip_value, P, kernels::portable> : portable::clip_value {};
template <VectorProgram P> struct kernel<op::clip_norm, P, kernels::portable> : portable::clip_norm {};
template <VectorProgram P> struct kernel<op::adamw, P, kernels::portable> : portable::adamw {};
template <VectorProgram P> struct kernel<op::sgd, P, kernels::portable> : portable::sgd {};
}  // namespace isotope::cpu
