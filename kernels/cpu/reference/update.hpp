#pragma once
/// Fused bodies, accumulation, the global norm and the optimisers.
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/elementwise.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>

#include <isotope/kernels/cpu/reference/body/body.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

/// What adamw and sgd share: the gradient's factor, and whether the step counts. Arithmetic is in the accumulation format.
template <class A> struct update_operands {
  view g;
  A factor;
  bool skipped;
  std::int64_t decaying;
  explicit update_operands(const launch& l)
      : g(l.in[l.in.size() - 3]), factor(A(l.scalars->gradient_scale)), decaying(l.constants<op::update_rule>().decaying) {
    const A norm = A(load(l.in[l.in.size() - 2], 0)), loss = A(load(l.in[l.in.size() - 1], 0)), clip = A(l.scalars->clip_norm);
    skipped = !std::isfinite(norm) || !std::isfinite(loss);
    if (l.constants<op::update_rule>().clips && clip > 0 && clip / (norm + A(1e-6)) < 1) factor *= clip / (norm + A(1e-6));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::elementwise, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0xff;
  static void run(const launch& l) {
    const shape& dims = l.out[0].dims;
    reference::index i(dims);
    for (std::int64_t left = dims.count(); left > 0;) {
      const auto n = left < reference::body_chunk ? left : reference::body_chunk;
      reference::run_body<P>(l, i, n, 0, nullptr);
      for (std::int64_t e = 0; e < n; ++e) i.next();
      left -= n;
    }
  }
};

template <class P> struct kernel<op::accumulate, P, kernels::reference> {
  static void run(const launch& l) {
    const view &x = l.in[1], &y = l.out[0];
    for (reference::index i(y.dims); i.valid(); i.next()) {
      const double more = reference::load(x, i.in(x.strides));
      const auto to = i.in(y.strides);
      reference::store(y, to, (l.accumulate & 1) != 0 ? reference::load(y, to) + more : more);
    }
  }
};

template <class P> struct kernel<op::global_norm, P, kernels::reference> {
  static void run(const launch& l) {
    const double k = double(l.scalars->gradient_scale);
    double sum = 0;
    for (reference::index i(l.in[0].dims); i.valid(); i.next()) {
      const double g = k * reference::load(l.in[0], i.in(l.in[0].strides));
      sum += g * g;
    }
    reference::store(l.out[0], 0, std::sqrt(sum));
  }
};

template <class P> struct kernel<op::clip_value, P, kernels::reference> {
  static void run(const launch& l) {
    const double c = double(l.scalars->clip_value) / double(l.scalars->gradient_scale);
    if (!(l.scalars->clip_value > 0)) return;
    for (std::int64_t i = 0; i < l.out[0].dims.count(); ++i) {
      const double g = reference::load(l.out[0], i);
      reference::store(l.out[0], i, g < -c ? -c : g > c ? c : g);
    }
  }
};

template <class P> struct kernel<op::clip_norm, P, kernels::reference> {
  static void run(const launch& l) {
    const double k = double(l.scalars->gradient_scale), c = double(l.scalars->clip_norm);
    double sum = 0;
    for (std::int64_t i = 0; i < l.out[0].dims.count(); ++i) sum += (k * reference::load(l.out[0], i)) * (k * reference::load(l.out[0], i));
    const double factor = c / (std::sqrt(sum) + 1e-6);
    if (!(c > 0) || !(factor < 1)) return;
    for (std::int64_t i = 0; i < l.out[0].dims.count(); ++i) reference::store(l.out[0], i, reference::load(l.out[0], i) * factor);
  }
};

template <class P> struct kernel<op::adamw, P, kernels::reference> {
  static void run(const launch& l) {
    using A = typename P::accum;
    const reference::update_operands<A> u(l);
    if (u.skipped) return;
    const step_scalars& s = *l.scalars;
    const A beta1 = A(s.beta1), beta2 = A(s.beta2), rest1 = A(1 - s.beta1), rest2 = A(1 - s.beta2),
            rate = A(s.learning_rate) * A(l.constants<op::update_rule>().rate_scale), epsilon = A(s.epsilon), decay = A(s.weight_decay);
    const double t = double(s.optimizer_step);
    const A correction1 = A(1 - std::pow(s.beta1, t)), correction2 = A(1 - std::pow(s.beta2, t));
    const view &w = l.out[0], &m = l.out[1], &v = l.out[2];
    for (std::int64_t i = 0; i < w.dims.count(); ++i) {
      const A g = u.factor * A(reference::load(u.g, i));
      const A m1 = beta1 * A(reference::load(m, i)) + rest1 * g;
      const A v1 = beta2 * A(reference::load(v, i)) + rest2 * (g * g);
      const A w0 = A(reference::load(w, i)), kept = i < u.decaying ? w0 - rate * decay * w0 : w0;
      const A w1 = kept - rate * ((m1 / correction1) / (std::sqrt(v1 / correction2) + epsilon));
      reference::store(m, i, double(m1));
      reference::store(v, i, double(v1));
      reference::store(w, i, double(w1));
      if (l.constants<op::update_rule>().shadow) reference::store(l.out[3], i, double(w1));
    }
  }
};

template <class P> struct kernel<op::sgd, P, kernels::reference> {
  static void run(const launch& l) {
    using A = typename P::accum;
    const reference::update_operands<A> u(l);
    if (u.skipped) return;
    const A rate = A(l.scalars->learning_rate) * A(l.constants<op::update_rule>().rate_scale), momentum = A(l.scalars->momentum),
            decay = A(l.scalars->weight_decay);
    const view &w = l.out[0], &m = l.out[1];
    for (std::int64_t i = 0; i < w.dims.count(); ++i) {
      const A w0 = A(reference::load(w, i)), g = u.factor * A(reference::load(u.g, i));
      const A push = momentum * A(reference::load(m, i)) + g, m1 = i < u.decaying ? push + decay * w0 : push;
      const A w1 = w0 - rate * m1;
      reference::store(m, i, double(m1));
      reference::store(w, i, double(w1));
      if (l.constants<op::update_rule>().shadow) reference::store(l.out[2], i, double(w1));
    }
  }
};

}  // namespace isotope::cpu
