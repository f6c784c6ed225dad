#pragma once
/// What the planner and the optimisers emit: accumulate, norms and clipping, AdamW, SGD.
#include "../../op/accumulate.hpp"
#include "../../op/adamw.hpp"
#include "../../op/clip_norm.hpp"
#include "../../op/clip_value.hpp"
#include "../../op/global_norm.hpp"
#include "../../op/sgd.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

struct update_spec : spec_basis {
  /// An operand in accumulation format that has no gradient.
  static constexpr operand_role accumulated(std::string_view name) { return {name, holds::accumulated, false}; }
  static constexpr numeric_policy policy{.sums = "fixed blocks, in f64 or two f32"};
  static constexpr std::array boundary{0.0, 1.0, -1.0, 0x1p-126, infinity};
  /// Puts cases of one gradient with the scalars of c: of each size, of special numbers if asked for, and of random sizes.
  static void gradients(case_sink& s, test_case c, std::initializer_list<std::int64_t> sizes, bool specials, int random) {
    const auto put = [&](operand_recipe g) {
      c.in = {g};
      s.put(c);
    };
    for (const std::int64_t n : sizes) put(s.wide({n}));
    if (specials) put(s.wide({24}, 0, 0, &generator_of<generators::specials>));
    for (int k = 0; k < random; ++k) put(s.wide({s.size(k, 0, 1, 3000)}));
  }
  static double sum_of_squares(const call& c, const array& g) {
    double sum = 0;
    for (const double x : g.at) sum += (double(c.scalars.gradient_scale) * x) * (double(c.scalars.gradient_scale) * x);
    return sum;
  }
};

/// In the first phase of a step, which is the one that a case runs: into = x.
template <> struct op_spec<op::accumulate> : update_spec {
  static constexpr track on = track::strict;
  static constexpr numeric_policy policy{};
  static constexpr std::array inputs{accumulated("into"), accumulated("x")};
  static constexpr std::array outputs{result_role{"into", holds::accumulated, comparison::exact}};
  static void reference(const call& c, std::span<answer> y) {
    y[0].resize(c.in[1].dims.count());
    for (std::int64_t i = 0; i < c.in[1].dims.count(); ++i) y[0].set(i, c.in[1][i]);
  }
  static void cases(case_sink& s) {
    for (const shape& n : {shape{}, shape{0}, shape{1}, shape{65}, shape{1023}, shape{33, 31}}) s.add({s.wide(n), s.wide(n)});
    s.add({s.wide({12, 17}), ordered(s.wide({12, 17}), {1, 0})});
    for (int k = 0; k < s.repeats(); ++k) s.add({s.wide({s.size(k, 0, 1, 3000)}), s.wide({s.size(k, 0, 1, 3000)})});
    s.put({.kind = case_kind::refusal, .in = {s.wide({3}), s.wide({4})}});
  }
};

template <> struct op_spec<op::global_norm> : update_spec {
  static constexpr std::array inputs{accumulated("g")};
  static constexpr std::array outputs{result_role{"norm", holds::accumulated}};
  static constexpr std::array fields{attribute_field{"gradient_scale", attribute_kind::scalar, 10, 1}};
  static void reference(const call& c, std::span<answer> y) {
    const double v = std::sqrt(sum_of_squares(c, c.in[0]));
    y[0].resize(1);
    y[0].set(0, v, std::isfinite(v) ? 4 * c.on.u() * v : 0);
  }
  static void cases(case_sink& s) {
    for (const float scale : {1.0f, 0.25f}) {
      test_case c;
      c.scalars.gradient_scale = scale;
      const auto put = [&](operand_recipe g) {
        c.in = {g};
        s.put(c);
      };
      const generator* const exponents = &generator_of<generators::exponents>;
      for (const std::int64_t n : {0, 1, 3, 64, 1025, 4096, 100003}) put(s.wide({n}));
      put(s.wide({3000}, -60, 60, exponents));
      put(s.wide({3000}, 40, 100, exponents));  // their squares overflow f32
      put(s.wide({3000}, -120, -70, exponents));
      put(s.wide({24}, 0, 0, &generator_of<generators::specials>));
      for (int k = 0; k < s.repeats(); ++k) put(s.wide({s.size(k, 0, 1, 9000)}));
    }
  }
};

template <> struct op_spec<op::clip_value> : update_spec {
  static constexpr numeric_policy policy{};
  static constexpr std::array inputs{accumulated("g")};
  static constexpr std::array outputs{result_role{"g", holds::accumulated}};
  static constexpr std::array fields{attribute_field{"clip_value", attribute_kind::scalar, 9, 0},
                                     attribute_field{"gradient_scale", attribute_kind::scalar, 10, 1}};
  static void reference(const call& c, std::span<answer> y) {
    const double limit = double(c.scalars.clip_value) / double(c.scalars.gradient_scale);
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) {
      const double g = c.in[0][i];
      const bool clips = c.scalars.clip_value > 0 && std::fabs(g) > limit;
      y[0].set(i, clips ? std::copysign(limit, g) : g, clips ? 2 * c.on.u() * limit : 0);
    }
  }
  static void cases(case_sink& s) {
    for (const auto& [clip, scale] : {std::pair(0.0f, 1.0f), std::pair(0.5f, 1.0f), std::pair(0.7f, 0.25f)}) {
      test_case c;
      c.scalars.clip_value = clip;
      c.scalars.gradient_scale = scale;
      gradients(s, c, {0, 1, 64, 1025}, true, s.repeats() / 2);
    }
  }
};

template <> struct op_spec<op::clip_norm> : update_spec {
  static constexpr std::array inputs{accumulated("g")};
  static constexpr std::array outputs{result_role{"g", holds::accumulated}};
  static constexpr std::array fields{attribute_field{"clip_norm", attribute_kind::scalar, 8, 0},
                                     attribute_field{"gradient_scale", attribute_kind::scalar, 10, 1}};
  static void reference(const call& c, std::span<answer> y) {
    const double limit = double(c.scalars.clip_norm), factor = limit / (std::sqrt(sum_of_squares(c, c.in[0])) + 1e-6);
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) {
      const bool clips = limit > 0 && factor < 1;
      y[0].set(i, clips ? c.in[0][i] * factor : c.in[0][i], clips ? 6 * c.on.u() * std::fabs(c.in[0][i] * factor) : 0);
    }
  }
  static void cases(case_sink& s) {
    for (const auto& [clip, scale] : {std::pair(0.0f, 1.0f), std::pair(0.5f, 1.0f), std::pair(1000.0f, 1.0f), std::pair(1.0f, 0.25f)}) {
      test_case c;
      c.scalars.clip_norm = clip;
      c.scalars.gradient_scale = scale;
      gradients(s, c, {0, 1, 64, 1025, 9000}, false, s.repeats() / 2);
    }
  }
};

/// Operands and scalars of the two optimisers.
struct optimizer_spec : update_spec {
  static constexpr std::array fields{attribute_field{"decaying", attribute_kind::integer, 0, 0},
                                     attribute_field{"shadow", attribute_kind::flag, 1, 0},
                                     attribute_field{"clip", attribute_kind::flag, 2, 0},
                                     attribute_field{"rate", attribute_kind::number, 0, 1},
                                     attribute_field{"optimizer_step", attribute_kind::scalar, 2, 1},
                                     attribute_field{"learning_rate", attribute_kind::scalar, 3, 1e-3},
                                     attribute_field{"beta1", attribute_kind::scalar, 4, 0.9},
                                     attribute_field{"beta2", attribute_kind::scalar, 5, 0.999},
                                     attribute_field{"epsilon", attribute_kind::scalar, 6, 1e-8},
                                     attribute_field{"weight_decay", attribute_kind::scalar, 7, 0},
                                     attribute_field{"clip_norm", attribute_kind::scalar, 8, 0},
                                     attribute_field{"gradient_scale", attribute_kind::scalar, 10, 1},
                                     attribute_field{"momentum", attribute_kind::scalar, 11, 0}};
  static constexpr numeric_policy policy{.contracts = true, .nan = "in the norm or the loss, then nothing happens"};

  struct step {
    double factor = 1;
    bool skipped = false;
    explicit step(const call& c) : factor(double(c.scalars.gradient_scale)) {
      const double norm = c.in[c.in.size() - 2][0], loss = c.in[c.in.size() - 1][0], clip = double(c.scalars.clip_norm);
      skipped = !std::isfinite(norm) || !std::isfinite(loss);
      if (c.constants<op::update_rule>().clips && clip > 0) factor *= std::fmin(1.0, clip / (norm + 1e-6));
    }
  };
  /// Puts c with a norm and a loss behind its other operands.
  static void finish(case_sink& s, test_case c, double norm, double loss) {
    for (const double x : {norm, loss}) c.in.push_back(s.wide({}, x, x, &generator_of<generators::constant>));
    s.put(std::move(c));
  }
  /// `moments` beside w: cases with several scalars, with and without a shadow in 16 bits.
  static void optimizer_cases(case_sink& s, int moments) {
    const auto put = [&](std::int64_t n, std::int64_t decaying, bool clip, float decay, std::int64_t t, double norm, double rate = 1,
                         double loss = 2, double size = 1) {
      for (const bool shadow : {false, true}) {
        if (shadow && s.program() == s.accum()) continue;
        test_case c;
        c.attr = op::update_rule::constants{.decaying = decaying, .shadow = shadow, .clips = clip, .rate_scale = rate};
        c.scalars.optimizer_step = t;
        c.scalars.learning_rate = 3e-3f;
        c.scalars.weight_decay = decay;
        c.scalars.momentum = moments == 1 ? 0.9f : 0.0f;
        c.scalars.clip_norm = clip ? 1.0f : 0.0f;
        c.scalars.gradient_scale = clip ? 0.5f : 1.0f;
        c.in = {s.wide({n}), s.wide({n}, -0.1 * size, 0.1 * size)};
        if (moments == 2) c.in.push_back(s.wide({n}, 1e-4 * size * size, 0.01 * size * size));
        if (shadow) c.in.push_back(s.x({n}));
        c.in.push_back(s.wide({n}, -2 * size, 2 * size));
        finish(s, std::move(c), norm, loss);
      }
    };
    for (const std::int64_t n : {0, 1, 3, 64, 65, 1023, 1025, 5000}) {
      put(n, 0, false, 0, 1, 3);
      put(n, n / 2, true, 0.1f, 7, 3);
    }
    put(300, 300, true, 0.01f, 1000, 0.5, 0.25);
    put(300, 100, true, 0.1f, 2, infinity);  // nothing happens
    put(300, 100, true, 0.1f, 2, nan);
    put(300, 100, true, 0.1f, 2, 3, 1, nan);
    put(300, 100, true, 0.1f, 2, 3, 1, -infinity);
    for (const double size : {1e-6, 1e-8, 0.0}) put(300, 100, false, 0.1f, 3, 1, 1, 2, size);  // gradients around epsilon
    for (int k = 0; k < s.repeats(); ++k) put(s.size(k, 0, 1, 3000), s.size(k, 1, 0, 1), k % 2 == 0, 0.1f, 3, 2);
  }
};

template <> struct op_spec<op::adamw> : optimizer_spec {
  static constexpr std::uint32_t version = 2;
  static constexpr std::array inputs{accumulated("w"),    accumulated("m"),   accumulated("v"), accumulated("g, after a shadow"),
                                     accumulated("norm"), accumulated("loss")};
  static constexpr std::array outputs{result_role{"w", holds::accumulated}, result_role{"m", holds::accumulated},
                                      result_role{"v", holds::accumulated}, result_role{"shadow", holds::floating}};
  /// |p - ref| <= 2 u |p| + 16 u lr (|b1 m| + |(1 - b1) g|) / ((sqrt(v_hat) + eps) (1 - b1^t))
  static void reference(const call& c, std::span<answer> y) {
    const step u(c);
    const bool shadow = c.constants<op::update_rule>().shadow;
    const std::int64_t n = c.in[0].dims.count();
    for (std::size_t k = 0; k < (shadow ? 4u : 3u); ++k) y[k].resize(n);
    y[0].roundings = 0;  // it is one of the two roundings
    const step_scalars& s = c.scalars;
    const double b1 = s.beta1, b2 = s.beta2, lr = double(s.learning_rate) * c.constants<op::update_rule>().rate_scale,
                 eps = double(s.epsilon), roundoff = c.on.u();
    const double c1 = 1 - std::pow(b1, double(s.optimizer_step)), c2 = 1 - std::pow(b2, double(s.optimizer_step));
    for (std::int64_t i = 0; i < n; ++i) {
      if (u.skipped) {
        for (std::size_t k = 0; k < (shadow ? 4u : 3u); ++k) y[k].set(i, c.in[k][i]);
        continue;
      }
      const double g = u.factor * c.in[shadow ? 4 : 3][i], w = c.in[0][i];
      const double m = b1 * c.in[1][i] + (1 - b1) * g, magnitude = std::fabs(b1 * c.in[1][i]) + std::fabs((1 - b1) * g);
      const double v = b2 * c.in[2][i] + (1 - b2) * g * g,
                   kept = i < c.constants<op::update_rule>().decaying ? w - lr * double(s.weight_decay) * w : w;
      const double denominator = (std::sqrt(v / c2) + eps) * c1, w1 = kept - lr * m / denominator;
      const double slack = 2 * roundoff * std::fabs(w1) + 16 * roundoff * lr * magnitude / denominator;
      y[0].set(i, w1, slack);
      y[1].set(i, m, 8 * roundoff * magnitude);
      y[2].set(i, v, 12 * roundoff * v);
      if (shadow) y[3].set(i, w1, slack);
    }
  }
  static void cases(case_sink& s) { optimizer_cases(s, 2); }
};

template <> struct op_spec<op::sgd> : optimizer_spec {
  static constexpr std::array inputs{accumulated("w"), accumulated("m"), accumulated("g, after a shadow"), accumulated("norm"),
                                     accumulated("loss")};
  static constexpr std::array outputs{result_role{"w", holds::accumulated}, result_role{"m", holds::accumulated},
                                      result_role{"shadow", holds::floating}};
  static void reference(const call& c, std::span<answer> y) {
    const step u(c);
    const bool shadow = c.constants<op::update_rule>().shadow;
    const std::int64_t n = c.in[0].dims.count();
    for (std::size_t k = 0; k < (shadow ? 3u : 2u); ++k) y[k].resize(n);
    const double lr = double(c.scalars.learning_rate) * c.constants<op::update_rule>().rate_scale, roundoff = c.on.u();
    for (std::int64_t i = 0; i < n; ++i) {
      if (u.skipped) {
        for (std::size_t k = 0; k < (shadow ? 3u : 2u); ++k) y[k].set(i, c.in[k][i]);
        continue;
      }
      const double w = c.in[0][i], a = double(c.scalars.momentum) * c.in[1][i], g = u.factor * c.in[shadow ? 3 : 2][i];
      const double d = i < c.constants<op::update_rule>().decaying ? double(c.scalars.weight_decay) * w : 0, m = a + g + d,
                   off = 8 * roundoff * (std::fabs(a) + std::fabs(g) + std::fabs(d));
      const double slack = 2 * roundoff * std::fabs(w) + lr * (off + 2 * roundoff * std::fabs(m));
      y[0].set(i, w - lr * m, slack);
      y[1].set(i, m, off);
      if (shadow) y[2].set(i, w - lr * m, slack);
    }
  }
  static void cases(case_sink& s) { optimizer_cases(s, 1); }
};

}  // namespace isotope::conform
