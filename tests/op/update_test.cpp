// labels: subgroups
#include "harness.hpp"

#include <isotope/op/muon.hpp>

namespace isotope::op_test {
namespace update_test {

class update : public op_test {};
INSTANTIATE_TEST_SUITE_P(, update, everywhere(), target_name);

constexpr std::int64_t sizes[] = {0, 1, 7, 64, 1031};

TEST_P(update, accumulate_adds_or_overwrites_by_phase) {
  const auto& here = *this;
  for (std::int64_t n : sizes) {
    const host into = random({n}, here.accum, 1), x = random({n}, here.type, 2);
    EXPECT_TRUE(same(here.run<op::accumulate>({into, x}).at(0), x.at));
    settings later;
    later.accumulate = 1;
    std::vector<double> sum;
    for (std::int64_t i = 0; i < n; ++i) sum.push_back(rounded(here.accum, into[i] + x[i]));
    EXPECT_TRUE(same(here.run<op::accumulate>({into, x}, {}, later).at(0), sum));
  }
  const host nothing = full({2}, here.accum, nan), x = full({2}, here.type, 1);
  EXPECT_TRUE(same(here.run<op::accumulate>({nothing, x}).at(0), {1, 1}));
}
TEST_P(update, global_norm_is_the_root_of_the_scaled_squares) {
  const auto& here = *this;
  for (std::int64_t n : sizes) {
    const host g = random({n}, here.accum, 1, -3, 3);
    settings s;
    s.scalars.gradient_scale = 0.25f;
    double sum = 0;
    for (double v : g.at) sum += 0.0625 * v * v;
    // every kernel set sums in f64
    EXPECT_TRUE(near(here.run<op::global_norm>({g}, {}, s).at(0), {std::sqrt(sum)}, double(n + 4) * 0x1p-52 * std::sqrt(sum)));
  }
  host wide = random({3000}, here.accum, 1, -3, 3);  // magnitudes from 2^-90 to 2^90
  double sum = 0;
  for (std::size_t i = 0; i < wide.at.size(); ++i) {
    wide.at[i] *= std::ldexp(1.0, int(i * 37 % 181) - 90);
    sum += wide.at[i] * wide.at[i];
  }
  EXPECT_TRUE(near(here.run<op::global_norm>({wide}).at(0), {std::sqrt(sum)}, 3004 * 0x1p-52 * std::sqrt(sum)));
  EXPECT_TRUE(same(here.run<op::global_norm>({host({3}, here.accum, {1, nan, 2})}).at(0), {nan}));
  EXPECT_TRUE(same(here.run<op::global_norm>({host({2}, here.accum, {infinity, 1})}).at(0), {infinity}));
  EXPECT_TRUE(same(here.run<op::global_norm>({host({2}, here.accum, {0x1p100, 0})}).at(0), {0x1p100}));  // its square overflows f32
}

TEST_P(update, clip_value_bounds_the_scaled_gradient_and_keeps_nan) {
  const auto& here = *this;
  settings s;
  s.scalars.gradient_scale = 0.25f;
  s.scalars.clip_value = 0.5f;
  const host g({7}, here.accum, {0, 1.5, -1.5, 2, 3, -infinity, nan});
  EXPECT_TRUE(same(here.run<op::clip_value>({g}, {}, s).at(0), {0, 1.5, -1.5, 2, 2, -2, nan}));
  for (std::int64_t n : sizes) {
    const host x = random({n}, here.accum, 1, -4, 4);
    std::vector<double> y;
    for (double v : x.at) y.push_back(std::min(std::max(v, -2.0), 2.0));
    EXPECT_TRUE(same(here.run<op::clip_value>({x}, {}, s).at(0), y));
  }
  EXPECT_TRUE(same(here.run<op::clip_value>({g}).at(0), g.at));
}
TEST_P(update, clip_norm_scales_the_tensor_down_to_the_norm) {
  const auto& here = *this;
  for (std::int64_t n : sizes)
    for (float clip : {0.0f, 0.5f, 1e6f}) {
      settings s;
      s.scalars.gradient_scale = 0.25f;
      s.scalars.clip_norm = clip;
      const host g = random({n}, here.accum, 1, -3, 3);
      double sum = 0;
      for (double v : g.at) sum += 0.0625 * v * v;
      const double k = clip > 0 ? std::min(1.0, double(clip) / (std::sqrt(sum) + 1e-6)) : 1;
      auto y = g.at;
      for (double& v : y) v *= k;
      // kernels may round the factor to the accumulation format
      EXPECT_TRUE(near(here.run<op::clip_norm>({g}, {}, s).at(0), y, 3 * 2 * roundoff(here.accum)));
    }
}

struct moments {
  host w, m, v, g;
};
moments make(const op_test& here, std::int64_t n) {
  return {random({n}, here.accum, 1), random({n}, here.accum, 2, -0.1, 0.1), random({n}, here.accum, 3, 0.5, 1),
          random({n}, here.accum, 4)};
}
settings step_of(float clip, std::int64_t t) {
  settings s;
  s.scalars.learning_rate = 0.01f;
  s.scalars.beta1 = 0.9;
  s.scalars.beta2 = 0.99;
  s.scalars.epsilon = 1e-8f;
  s.scalars.weight_decay = 0.1f;
  s.scalars.momentum = 0.9f;
  s.scalars.clip_norm = clip;
  s.scalars.gradient_scale = 0.5f;
  s.scalars.optimizer_step = t;
  return s;
}
double factor(const step_scalars& s, double norm, bool clipped = true) {
  const double k = double(s.gradient_scale), clip = double(s.clip_norm);
  return clip <= 0 || !clipped ? k : k * std::min(1.0, clip / (norm + 1e-6));
}
op::update_rule::constants decaying(std::int64_t n, bool shadow, bool clipped = true, double rate = 1) {
  return {.decaying = n, .shadow = shadow, .clips = clipped, .rate_scale = rate};
}
/// The tolerance of numbers of order 1 after about 12 roundings in the accumulation format.
double few_roundings(const op_test& here) { return 12 * 2 * roundoff(here.accum) * 4; }

TEST_P(update, adamw_follows_the_formula_with_decay_clipping_and_shadow) {
  const auto& here = *this;
  for (std::int64_t n : sizes)
    for (float clip : {0.0f, 1.0f, 1e6f})
      for (bool shadow : {false, true}) {
        const bool clipped = n != 64;
        const auto x = make(here, n);
        const settings s = step_of(clip, 3);
        const host norm({}, here.accum, {5}), loss({}, here.accum, {1});
        std::vector<host> in = {x.w, x.m, x.v};
        if (shadow) in.push_back(full({n}, here.type, 0));
        in.insert(in.end(), {x.g, norm, loss});
        const auto y = here.run<op::adamw>(in, decaying(n / 2, shadow, clipped, 0.5), s);
        const double b1 = 0.9, b2 = 0.99, c = factor(s.scalars, 5, clipped), lr = 0.5 * double(0.01f);
        std::vector<double> w, m, v;
        for (std::int64_t i = 0; i < n; ++i) {
          m.push_back(b1 * x.m[i] + (1 - b1) * c * x.g[i]);
          v.push_back(b2 * x.v[i] + (1 - b2) * c * x.g[i] * c * x.g[i]);
          w.push_back(x.w[i] - (i < n / 2 ? lr * double(0.1f) * x.w[i] : 0) -
                      lr * (m.back() / (1 - std::pow(b1, 3))) / (std::sqrt(v.back() / (1 - std::pow(b2, 3))) + double(1e-8f)));
        }
        ASSERT_EQ(y.size(), shadow ? 4u : 3u);
        EXPECT_TRUE(near(y[0], w, few_roundings(here)));
        EXPECT_TRUE(near(y[1], m, few_roundings(here)));
        EXPECT_TRUE(near(y[2], v, few_roundings(here)));
        if (shadow) {
          std::vector<double> r;
          for (double e : y[0].at) r.push_back(rounded(here.type, e));
          EXPECT_TRUE(same(y[3], r));
        }
      }
}
// If 0.999 is rounded to f32, 1 - 0.999 has a relative error of 1.3e-5, which is about 200 roundings of f32.
TEST_P(update, adamw_takes_one_minus_beta_to_the_last_place) {
  const auto& here = *this;
  const host zero = full({5}, here.accum, 0), g = full({5}, here.accum, 1), one({}, here.accum, {1});
  settings s = step_of(0, 1);
  s.scalars.gradient_scale = 1;
  s.scalars.beta1 = 1 - 1e-6;
  s.scalars.beta2 = 0.999;
  const auto y = here.run<op::adamw>({zero, zero, zero, g, one, one}, decaying(0, false), s);
  EXPECT_TRUE(near(y.at(1), std::vector<double>(5, 1 - s.scalars.beta1), 1e-6 * here.roundings(4)));
  EXPECT_TRUE(near(y.at(2), std::vector<double>(5, 1 - s.scalars.beta2), 1e-3 * here.roundings(4)));
}
TEST_P(update, sgd_follows_the_formula) {
  const auto& here = *this;
  for (std::int64_t n : sizes)
    for (bool shadow : {false, true}) {
      const auto x = make(here, n);
      const settings s = step_of(2, 1);
      std::vector<host> in = {x.w, x.m};
      if (shadow) in.push_back(full({n}, here.type, 0));
      in.insert(in.end(), {x.g, host({}, here.accum, {5}), host({}, here.accum, {1})});
      const auto y = here.run<op::sgd>(in, decaying(n / 3, shadow, true, 2), s);
      std::vector<double> w, m;
      for (std::int64_t i = 0; i < n; ++i) {
        m.push_back(double(0.9f) * x.m[i] + factor(s.scalars, 5) * x.g[i] + (i < n / 3 ? double(0.1f) * x.w[i] : 0));
        w.push_back(x.w[i] - 2 * double(0.01f) * m.back());
      }
      ASSERT_EQ(y.size(), shadow ? 3u : 2u);
      EXPECT_TRUE(near(y[0], w, few_roundings(here)));
      EXPECT_TRUE(near(y[1], m, few_roundings(here)));
    }
}
TEST_P(update, momentum_looks_ahead_of_what_it_keeps) {
  const auto& here = *this;
  for (std::int64_t n : sizes)
    for (bool clipped : {false, true}) {
      const auto x = make(here, n);
      const settings s = step_of(2, 1);
      const auto y =
          here.run<op::momentum>({x.m, x.g, host({}, here.accum, {5}), host({}, here.accum, {1})}, decaying(0, false, clipped), s);
      std::vector<double> m, u;
      for (std::int64_t i = 0; i < n; ++i) {
        const double g = factor(s.scalars, 5, clipped) * x.g[i];
        m.push_back(double(0.9f) * x.m[i] + g);
        u.push_back(g + double(0.9f) * m.back());
      }
      ASSERT_EQ(y.size(), 2u);
      EXPECT_TRUE(near(y[0], m, few_roundings(here)));
      EXPECT_TRUE(near(y[1], u, few_roundings(here)));
    }
}
TEST_P(update, muon_moves_along_its_direction) {
  const auto& here = *this;
  for (std::int64_t n : sizes)
    for (bool shadow : {false, true}) {
      const host w = random({n}, here.accum, 1), direction = random({n}, here.type, 2);
      std::vector<host> in = {w};
      if (shadow) in.push_back(full({n}, here.type, 0));
      in.insert(in.end(), {direction, host({}, here.accum, {5}), host({}, here.accum, {1})});
      auto a = decaying(n / 3, shadow, true, 2);
      a.direction_scale = 3;
      const auto y = here.run<op::muon>(in, a, step_of(2, 1));
      const double rate = 2 * double(0.01f);
      std::vector<double> moved, rounds;
      for (std::int64_t i = 0; i < n; ++i) moved.push_back(w[i] - (i < n / 3 ? rate * double(0.1f) * w[i] : 0) - 3 * rate * direction[i]);
      ASSERT_EQ(y.size(), shadow ? 2u : 1u);
      EXPECT_TRUE(near(y[0], moved, few_roundings(here)));
      for (double e : y[0].at) rounds.push_back(rounded(here.type, e));
      if (shadow) { EXPECT_TRUE(same(y[1], rounds)); }
    }
}
TEST_P(update, a_norm_or_loss_that_is_not_finite_changes_nothing) {
  const auto& here = *this;
  const auto x = make(here, 9);
  for (double norm : {1.0, nan, infinity})
    for (double loss : {1.0, nan, -infinity}) {
      const host scalars[] = {host({}, here.accum, {norm}), host({}, here.accum, {loss})};
      const auto y = here.run<op::adamw>({x.w, x.m, x.v, x.g, scalars[0], scalars[1]}, decaying(4, false), step_of(1, 1));
      const auto z = here.run<op::sgd>({x.w, x.m, x.g, scalars[0], scalars[1]}, decaying(4, false), step_of(1, 1));
      const auto p = here.run<op::momentum>({x.m, x.g, scalars[0], scalars[1]}, decaying(0, false), step_of(1, 1));
      auto factored = decaying(4, false);
      factored.direction_scale = 1;
      const auto q = here.run<op::muon>({x.w, random({9}, here.type, 5), scalars[0], scalars[1]}, factored, step_of(1, 1));
      const bool counts = std::isfinite(norm) && std::isfinite(loss);
      EXPECT_EQ(bool(same(p.at(0), x.m.at)), !counts);
      EXPECT_EQ(bool(same(p.at(1), std::vector<double>(9, 0.0))), !counts);
      EXPECT_EQ(bool(same(q.at(0), x.w.at)), !counts);
      EXPECT_EQ(bool(same(y.at(0), x.w.at)), !counts);
      EXPECT_EQ(bool(same(y.at(1), x.m.at)), !counts);
      EXPECT_EQ(bool(same(y.at(2), x.v.at)), !counts);
      EXPECT_EQ(bool(same(z.at(0), x.w.at)), !counts);
      EXPECT_EQ(bool(same(z.at(1), x.m.at)), !counts);
    }
}

}  // namespace update_test
}  // namespace isotope::op_test
