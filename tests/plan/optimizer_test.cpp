#include "exposed.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

#include <cmath>

using namespace plan_test;

namespace optimizer_test {

using numbers = std::map<std::string, std::vector<double>>;
constexpr isotope::model::gpt_loss_of model{{2, 2, 16, 11, 6}, 2, 5};  // 28 tensors

isotope::step_scalars hyperparameters() {
  isotope::step_scalars x;
  x.learning_rate = 0.003f;
  x.beta1 = 0.9;
  x.beta2 = 0.95;
  x.weight_decay = 0.1f;
  x.clip_norm = 0.7f;
  return x;
}
double norm_of(const numbers& g) {
  double sum = 0;
  for (const auto& [path, values] : g)
    for (double v : values) sum += v * v;
  return std::sqrt(sum);
}
/// The factor of torch.nn.utils.clip_grad_norm_: min(1, clip / (norm + 1e-6)).
double clip_factor(double norm, double clip) { return std::min(1.0, clip / (norm + 1e-6)); }

/// AdamW by definition in f64, on the gradients that the session reports. `count_per_tensor` makes the mistake of advancing the step
/// count at each tensor instead of once per step.
struct adamw_by_hand {
  numbers w, m, v;
  std::map<std::string, bool> decays;
  bool count_per_tensor = false;
  std::int64_t t = 0;

  void update(const numbers& g, const isotope::step_scalars& s) {
    const double c = clip_factor(norm_of(g), s.clip_norm), b1 = s.beta1, b2 = s.beta2, rate = s.learning_rate;
    t += count_per_tensor ? 0 : 1;
    for (const auto& [path, values] : g) {
      t += count_per_tensor ? 1 : 0;
      auto &wk = w.at(path), &mk = m[path], &vk = v[path];
      mk.resize(values.size());
      vk.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double gi = c * values[i];
        mk[i] = b1 * mk[i] + (1 - b1) * gi;
        vk[i] = b2 * vk[i] + (1 - b2) * gi * gi;
        if (decays.at(path)) wk[i] -= rate * s.weight_decay * wk[i];
        wk[i] -= rate * (mk[i] / (1 - std::pow(b1, double(t)))) / (std::sqrt(vk[i] / (1 - std::pow(b2, double(t)))) + s.epsilon);
      }
    }
  }
};
template <class E> numbers widened(const std::map<std::string, std::vector<E>>& x) {
  numbers r;
  for (const auto& [path, values] : x) r[path].assign(values.begin(), values.end());
  return r;
}

/// Runs 100 steps by a session and by the definition, and returns the relative distance of the parameters in the norm of each tensor.
template <class T> double hundred_steps(bool count_per_tensor) {
  using E = typename T::precision::storage;
  auto s = loaded<T>(exposed<T>(planned<T>(model)));
  adamw_by_hand hand;
  hand.count_per_tensor = count_per_tensor;
  hand.w = widened(all_values<E>(s, "param"));
  for (const auto& slot : s.parameters()) hand.decays[std::string(slot.path.view())] = slot.dims.rank >= 2;
  EXPECT_EQ(hand.w.size(), 28u);
  int clipped = 0;
  for (int step = 1; step <= 100; ++step) {
    auto x = hyperparameters();
    x.optimizer_step = step;
    const auto report = s.run(x);
    const auto g = widened(all_values<E>(s, "grad"));
    EXPECT_TRUE(std::fabs(report.grad_norm / norm_of(g) - 1) <= 1e-6);
    clipped += report.grad_norm > double(x.clip_norm);
    hand.update(g, x);
  }
  EXPECT_TRUE(clipped > 0 && clipped < 100) << clipped;  // some steps are clipped and some are not
  double worst = 0;
  for (const auto& [path, got] : widened(all_values<E>(s, "param"))) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      error += (got[i] - hand.w[path][i]) * (got[i] - hand.w[path][i]);
      size += got[i] * got[i];
    }
    worst = std::max(worst, !(error >= 0) ? INFINITY : std::sqrt(error / size));
  }
  return worst;
}

template <class T> struct adamw : testing::Test {};
using f32_targets = ::testing::Types<reference_f32, portable_f32>;
TYPED_TEST_SUITE(adamw, f32_targets, target_name);
// Each step rounds each element by u = 6e-8 in a random direction, which gives sqrt(100) u, and with the few operations of a step less than 1e-6.
TYPED_TEST(adamw, equals_the_definition_after_100_steps) { EXPECT_TRUE(hundred_steps<TypeParam>(false) <= 1e-6); }

TEST(adamw_f64, equals_the_definition_after_100_steps) { EXPECT_TRUE(hundred_steps<reference_f64>(false) <= 1e-12); }
TEST(adamw_f64, counts_steps_not_tensors) { EXPECT_GT(hundred_steps<reference_f64>(true), 1e-4); }

/// A loss whose gradients are exactly zero, so that only weight decay changes parameters.
struct at_rest {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using isotope::init::ones;
    const auto matrix = s.param("matrix", {4, 4}, ones), vector = s.param("vector", {4}, ones);
    const auto kept = s.param("kept matrix", {4, 4}, {.init = ones, .decay = 0});
    const auto decaying = s.param("decaying vector", {4}, {.init = ones, .decay = 1});
    return mean((matrix + vector + kept + decaying) * 0.0);
  }
};
TEST(weight_decay, shrinks_matrices_alone_unless_the_parameter_says_otherwise) {
  auto s = loaded<reference_f32>(exposed<reference_f32>(planned<reference_f32>(at_rest{})));
  auto x = hyperparameters();
  x.learning_rate = 0.5f;
  s.run(x);
  const float shrunk = 1.0f - 0.5f * 0.1f;
  for (const auto& [path, want] : {std::pair{"matrix", shrunk}, {"vector", 1.0f}, {"kept matrix", 1.0f}, {"decaying vector", shrunk}})
    for (float w : values<float>(s, "param", path)) EXPECT_EQ(w, want) << path;
}

TEST(clipping, scales_the_gradient_as_pytorch_does) {
  for (const float clip : {0.01f, 0.2f, 1e9f, 0.0f}) {
    auto s = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, {.optimizer = isotope::optimizer_kind::sgd})));
    const auto before = all_values<double>(s, "param");
    isotope::step_scalars x;
    x.learning_rate = 0.5f;
    x.clip_norm = clip;
    const auto report = s.run(x);
    const auto g = all_values<double>(s, "grad");
    EXPECT_TRUE(std::fabs(report.grad_norm - norm_of(g)) <= 1e-12 * norm_of(g));  // the norm before clipping
    const double factor = clip > 0 ? clip_factor(norm_of(g), double(clip)) : 1;
    for (const auto& [path, w] : all_values<double>(s, "param"))
      for (std::size_t i = 0; i < w.size(); ++i)
        ASSERT_TRUE(std::fabs(before.at(path)[i] - 0.5 * factor * g.at(path)[i] - w[i]) <= 1e-14) << path;
  }
}

TEST(sgd, with_momentum_and_decay_equals_the_definition) {
  auto s = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, {.optimizer = isotope::optimizer_kind::sgd})));
  auto w = all_values<double>(s, "param");
  numbers m;
  isotope::step_scalars x;
  x.learning_rate = 0.05f;
  x.momentum = 0.9f;
  x.weight_decay = 0.01f;
  for (int step = 0; step < 20; ++step) {
    s.run(x);
    for (const auto& [path, g] : all_values<double>(s, "grad")) {
      m[path].resize(g.size());
      const bool decays = path.find("weight") != path.npos && path.find("ln_") == path.npos;
      for (std::size_t i = 0; i < g.size(); ++i) {
        m[path][i] = double(x.momentum) * m[path][i] + g[i] + (decays ? double(x.weight_decay) * w[path][i] : 0);
        w[path][i] -= double(x.learning_rate) * m[path][i];
      }
    }
  }
  EXPECT_TRUE(relative_distance(all_values<double>(s, "param"), 1, w) <= 1e-12);
}

}  // namespace optimizer_test
