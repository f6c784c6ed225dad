#pragma once
/// The first and the last step of a Muon update.
#include "../../op/muon.hpp"
#include "update.hpp"

namespace isotope::conform {

/// What the specifications of both ops share: attributes, step scalars, and cases with each kind of them.
struct muon_spec : optimizer_spec {
  static constexpr std::array fields{attribute_field{"decaying", attribute_kind::integer, 0, 0},
                                     attribute_field{"shadow", attribute_kind::flag, 1, 0},
                                     attribute_field{"clip", attribute_kind::flag, 2, 0},
                                     attribute_field{"rate", attribute_kind::number, 0, 1},
                                     attribute_field{"size", attribute_kind::number, 1, 1},
                                     attribute_field{"learning_rate", attribute_kind::scalar, 3, 1e-3},
                                     attribute_field{"weight_decay", attribute_kind::scalar, 7, 0},
                                     attribute_field{"clip_norm", attribute_kind::scalar, 8, 0},
                                     attribute_field{"gradient_scale", attribute_kind::scalar, 10, 1},
                                     attribute_field{"momentum", attribute_kind::scalar, 11, 0}};

  /// Calls put(c, dims, norm, loss) for shapes and scalars of all kinds; c has the scalars.
  template <class F> static void scalar_cases(case_sink& s, const F& put) {
    const auto with = [](bool clip, float decay, double rate, double size) {
      test_case c;
      c.attr = op::muon::constants{.clips = clip, .rate_scale = rate, .direction_scale = size};
      c.scalars.learning_rate = 3e-3f;
      c.scalars.weight_decay = decay;
      c.scalars.momentum = 0.95f;
      c.scalars.clip_norm = clip ? 1.0f : 0.0f;
      c.scalars.gradient_scale = clip ? 0.5f : 1.0f;
      return c;
    };
    for (const shape& n : {shape{0}, shape{1}, shape{3, 5}, shape{8, 8}, shape{65}, shape{33, 31}, shape{41, 25}, shape{50, 100}}) {
      put(with(false, 0, 1, 1), n, 3.0, 2.0);
      put(with(true, 0.1f, 0.25, 5.5), n, 3.0, 2.0);
    }
    put(with(true, 0.1f, 1, 1), {300}, 0.5, 2.0);       // below the limit
    put(with(true, 0.1f, 1, 1), {300}, infinity, 2.0);  // nothing happens
    put(with(true, 0.1f, 1, 1), {300}, nan, 2.0);
    put(with(false, 0.1f, 1, 1), {300}, 3.0, nan);
    put(with(false, 0.1f, 1, 1), {300}, 3.0, -infinity);
    for (int k = 0; k < s.repeats(); ++k) put(with(k % 2 == 0, 0.1f, 1, 0.2), {s.size(k, 0, 1, 60), s.size(k, 1, 1, 60)}, 2.0, 2.0);
  }
};

template <> struct op_spec<op::momentum> : muon_spec {
  static constexpr std::array inputs{accumulated("m"), accumulated("g"), accumulated("norm"), accumulated("loss")};
  static constexpr std::array outputs{result_role{"m", holds::accumulated}, result_role{"u", holds::accumulated}};
  /// The terms of m round three times, those of u five times.
  static void reference(const call& c, std::span<answer> y) {
    const step u(c);
    const std::int64_t n = c.in[0].dims.count();
    for (auto& r : y.first(2)) r.resize(n);
    const double momentum = double(c.scalars.momentum), roundoff = c.on.u();
    for (std::int64_t i = 0; i < n; ++i) {
      if (u.skipped) {
        y[0].set(i, c.in[0][i]);
        y[1].set(i, 0);
        continue;
      }
      const double kept = momentum * c.in[0][i], g = u.factor * c.in[1][i], m = kept + g,
                   off = 8 * roundoff * (std::fabs(kept) + std::fabs(g));
      y[0].set(i, m, off);
      y[1].set(i, g + momentum * m, 2 * off);
    }
  }
  static void cases(case_sink& s) {
    scalar_cases(s, [&](test_case c, const shape& n, double norm, double loss) {
      c.in = {s.wide(n, -0.1, 0.1), s.wide(n, -2, 2)};
      finish(s, std::move(c), norm, loss);
    });
    s.put({.kind = case_kind::refusal, .in = {s.wide({3}), s.wide({4}), s.wide({}), s.wide({})}});
  }
};

template <> struct op_spec<op::muon> : muon_spec {
  static constexpr std::array inputs{accumulated("w"), operand_role{"x, after a shadow", holds::floating, false}, accumulated("norm"),
                                     accumulated("loss")};
  static constexpr std::array outputs{result_role{"w", holds::accumulated}, result_role{"shadow", holds::floating}};
  static void reference(const call& c, std::span<answer> y) {
    const step u(c);
    const bool shadow = c.constants<op::muon>().shadow;
    const std::int64_t n = c.in[0].dims.count();
    for (auto& r : y.first(shadow ? 2 : 1)) r.resize(n);
    const double lr = double(c.scalars.learning_rate) * c.constants<op::muon>().rate_scale, roundoff = c.on.u();
    for (std::int64_t i = 0; i < n; ++i) {
      if (u.skipped) {
        for (std::size_t k = 0; k < (shadow ? 2u : 1u); ++k) y[k].set(i, c.in[k][i]);
        continue;
      }
      const double w = c.in[0][i], decay = i < c.constants<op::muon>().decaying ? lr * double(c.scalars.weight_decay) * w : 0;
      const double moved = lr * c.constants<op::muon>().direction_scale * c.in[shadow ? 2 : 1][i];
      const double slack = 2 * roundoff * std::fabs(w) + 8 * roundoff * (std::fabs(decay) + std::fabs(moved));
      for (std::size_t k = 0; k < (shadow ? 2u : 1u); ++k) y[k].set(i, w - decay - moved, slack);
    }
  }
  static void cases(case_sink& s) {
    scalar_cases(s, [&](test_case c, const shape& n, double norm, double loss) {
      for (const bool shadow : {false, true}) {
        if (shadow && s.program() == s.accum()) continue;
        test_case d = c;
        auto constants = op::muon::constants::of(c.attr);
        constants.decaying = n.count() / 2;
        constants.shadow = shadow;
        d.attr = constants;
        d.in = {s.wide(n)};
        if (shadow) d.in.push_back(s.x(n));
        d.in.push_back(s.x(n));
        finish(s, std::move(d), norm, loss);
      }
    });
  }
};

}  // namespace isotope::conform
