#include "exposed.hpp"
#include "memory_checker.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/train/batch.hpp>

#include <array>
#include <cmath>

using namespace plan_test;
using isotope::tensor_kind;
using isotope::training_options;

namespace muon_test {

using numbers = std::map<std::string, std::vector<double>>;
constexpr isotope::optimizer_kind muon = isotope::optimizer_kind::muon;
constexpr isotope::model::gpt size{2, 2, 16, 11, 6};
constexpr isotope::model::gpt_loss_of model{size, 2, 5};  // its matrices are (16, 48), (16, 16), (16, 64) and (64, 16)

isotope::step_scalars hyperparameters() {
  isotope::step_scalars x;
  x.learning_rate = 0.01f;
  x.beta1 = 0.9;
  x.beta2 = 0.95;
  x.weight_decay = 0.1f;
  x.clip_norm = 0.7f;
  x.momentum = 0.95f;
  return x;
}

// Muon by definition, with loops in f64.

struct matrix {
  std::int64_t rows, cols;
  std::vector<double> at;
  matrix(std::int64_t r, std::int64_t c) : rows(r), cols(c), at(std::size_t(r * c), 0.0) {}
  double& operator()(std::int64_t i, std::int64_t j) { return at[std::size_t(i * cols + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const { return at[std::size_t(i * cols + j)]; }
};
matrix transposed(const matrix& x) {
  matrix y(x.cols, x.rows);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j) y(j, i) = x(i, j);
  return y;
}
matrix times(const matrix& a, const matrix& b) {
  matrix y(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t k = 0; k < a.cols; ++k) y(i, j) += a(i, k) * b(k, j);
  return y;
}
matrix orthogonalized(matrix u) {
  if (u.rows > u.cols) return transposed(orthogonalized(transposed(u)));
  double norm = 0;
  for (double v : u.at) norm += v * v;
  for (double& v : u.at) v /= std::sqrt(norm) + 1e-7;
  for (int turn = 0; turn < 5; ++turn) {
    const matrix a = times(u, transposed(u)), aa = times(a, a), ax = times(a, u), aax = times(aa, u);
    for (std::size_t i = 0; i < u.at.size(); ++i) u.at[i] = 3.4445 * u.at[i] - 4.7750 * ax.at[i] + 2.0315 * aax.at[i];
  }
  return u;
}
/// Singular values of x by Jacobi rotations of x x^T.
std::vector<double> singular_values(matrix x) {
  if (x.rows > x.cols) x = transposed(x);
  matrix a = times(x, transposed(x));
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::int64_t p = 0; p < a.rows; ++p)
      for (std::int64_t q = p + 1; q < a.rows; ++q) {
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p)), c = std::cos(angle), s = std::sin(angle);
        for (std::int64_t k = 0; k < a.rows; ++k) {
          const double u = a(p, k), v = a(q, k);
          a(p, k) = c * u - s * v, a(q, k) = s * u + c * v;
        }
        for (std::int64_t k = 0; k < a.rows; ++k) {
          const double u = a(k, p), v = a(k, q);
          a(k, p) = c * u - s * v, a(k, q) = s * u + c * v;
        }
      }
  std::vector<double> r;
  for (std::int64_t i = 0; i < a.rows; ++i) r.push_back(std::sqrt(a(i, i)));
  return r;
}

struct by_hand {
  std::map<std::string, isotope::shape> matrices;  // the parameters that Muon updates
  std::map<std::string, bool> decays;
  numbers w, m, v;
  int t = 0;

  void update(const numbers& g, const isotope::step_scalars& s) {
    double norm = 0;
    for (const auto& [path, values] : g)
      for (double x : values) norm += x * x;
    const double c = s.clip_norm > 0 ? std::min(1.0, double(s.clip_norm) / (std::sqrt(norm) + 1e-6)) : 1, rate = double(s.learning_rate);
    ++t;
    for (const auto& [path, values] : g) {
      auto &wk = w.at(path), &mk = m[path], &vk = v[path];
      mk.resize(values.size());
      vk.resize(values.size());
      std::vector<double> step(values.size());
      const auto found = matrices.find(path);
      if (found != matrices.end()) {
        const double mu = double(s.momentum), rows = double(found->second[0]), cols = double(found->second[1]);
        matrix u(found->second[0], found->second[1]);
        for (std::size_t i = 0; i < values.size(); ++i) {
          mk[i] = mu * mk[i] + c * values[i];
          u.at[i] = c * values[i] + mu * mk[i];
        }
        u = orthogonalized(u);
        for (std::size_t i = 0; i < values.size(); ++i) step[i] = 0.2 * std::sqrt(std::max(rows, cols)) * u.at[i];
      } else {
        for (std::size_t i = 0; i < values.size(); ++i) {
          mk[i] = s.beta1 * mk[i] + (1 - s.beta1) * c * values[i];
          vk[i] = s.beta2 * vk[i] + (1 - s.beta2) * c * values[i] * c * values[i];
          step[i] = mk[i] / (1 - std::pow(s.beta1, t)) / (std::sqrt(vk[i] / (1 - std::pow(s.beta2, t))) + double(s.epsilon));
        }
      }
      for (std::size_t i = 0; i < values.size(); ++i)
        wk[i] -= rate * step[i] + (decays.at(path) ? rate * double(s.weight_decay) * wk[i] : 0);
    }
  }
};
template <class E> numbers widened(const std::map<std::string, std::vector<E>>& x) {
  numbers r;
  for (const auto& [path, values] : x) r[path].assign(values.begin(), values.end());
  return r;
}

/// The relative distance between the parameters of a session and of the definition after `steps` steps.
template <class T, class Model> double distance_after(int steps, const Model& of) {
  using E = typename T::precision::storage;
  auto s = loaded<T>(exposed<T>(planned<T>(of, {.optimizer = muon})));
  by_hand hand;
  hand.w = widened(all_values<E>(s, "param"));
  for (const auto& slot : s.parameters()) {
    hand.decays[std::string(slot.path.view())] = slot.decay;
    if (slot.moment2 < 0) hand.matrices[std::string(slot.path.view())] = slot.dims;
  }
  for (int step = 1; step <= steps; ++step) {
    auto x = hyperparameters();
    x.optimizer_step = step;
    s.run(x);
    hand.update(widened(all_values<E>(s, "grad")), x);
  }
  return relative_distance(widened(all_values<E>(s, "param")), 1, hand.w);
}

/// A loss whose gradients are its inputs, with matrices of several shapes and full rank.
struct given_gradients {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto term = [&](std::string_view name, const isotope::shape& n) {
      std::string input = "g_" + std::string(name);
      return sum(s.param(name, n, {.init = isotope::init::normal(0.1), .muon = 1}) * s.input(input, n));
    };
    return term("wide", {5, 19}) + term("tall", {23, 7}) + term("square", {4, 4});
  }
};

TEST(muon_f64, equals_the_definition) {
  // Five iterations enlarge rounding errors in small singular values by a factor of 500, and the errors of each step affect the next.
  for (const int steps : {1, 10}) {
    EXPECT_TRUE(distance_after<reference_f64>(steps, model) <= 1e-10) << steps;
    EXPECT_TRUE(distance_after<reference_f64>(steps, given_gradients{}) <= 1e-12) << steps;
  }
}

// Other optimisers ignore param_options::muon.
TEST(muon, is_not_what_adamw_does_with_its_matrices) {
  const auto g = isotope::plan_detail::trace_training<reference_f32>(given_gradients{}, {});
  int updates = 0;
  for (const auto& n : g.nodes) {
    EXPECT_NE(n.op, &isotope::info<isotope::op::muon>);
    updates += n.op == &isotope::info<isotope::op::adamw>;
  }
  EXPECT_EQ(updates, 1);
}

template <class T> struct muon_f32 : testing::Test {};
using f32_targets = ::testing::Types<reference_f32, portable_f32>;
TYPED_TEST_SUITE(muon_f32, f32_targets, target_name);
// Like above with u = 6e-8. In each step the update has a magnitude of 0.01 0.2 sqrt(23), and the weights one of 0.1.
TYPED_TEST(muon_f32, equals_the_definition) {
  for (const int steps : {1, 10}) EXPECT_TRUE(distance_after<TypeParam>(steps, given_gradients{}) <= 1e-5) << steps;
}

TEST(muon, moves_along_a_matrix_whose_singular_values_are_near_one) {
  auto s = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(given_gradients{}, {.optimizer = muon})));
  const auto before = all_values<double>(s, "param");
  auto x = hyperparameters();
  x.weight_decay = 0;
  s.run(x);
  const auto after = all_values<double>(s, "param");
  for (const auto& slot : s.parameters()) {
    const std::string path(slot.path.view());
    matrix step(slot.dims[0], slot.dims[1]);
    const double factor = double(x.learning_rate) * 0.2 * std::sqrt(double(std::max(slot.dims[0], slot.dims[1])));
    for (std::size_t i = 0; i < step.at.size(); ++i) step.at[i] = (before.at(path)[i] - after.at(path)[i]) / factor;
    for (const double v : singular_values(step)) EXPECT_TRUE(v >= 0.65 && v <= 1.25) << path << ' ' << v;
  }
}

TEST(muon, takes_the_matrices_of_hidden_layers) {
  const auto matrices = [](const auto& of) {
    std::string r;
    for (const auto& s : planned<reference_f32>(of, {.optimizer = muon}).slots)
      if (s.trained && s.moment2 < 0) (r += s.path.view()) += ' ';
    return r;
  };
  std::string blocks;
  for (const std::string h : {"h.0.", "h.1."})
    for (const std::string w : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) blocks += h + w + ".weight ";
  EXPECT_EQ(matrices(model), blocks);
  EXPECT_EQ(matrices(isotope::model::mlp_loss_of{{3, 8, 2, 4}, 5}), "hidden.0.weight hidden.1.weight ");
}

isotope::param_group slow_or_frozen(std::string_view path, const isotope::shape&, isotope::param_group given) {
  if (path == "h.0.mlp.c_fc.weight") given.trainable = false;
  if (path == "h.1.mlp.c_fc.weight") given.rate_scale = 0.5;
  if (path == "h.1.attn.c_attn.weight") given.muon = 0;
  if (path == "wpe.weight") given.muon = 1;
  return given;
}
TEST(muon, follows_the_groups_of_parameters) {
  const auto p = planned<reference_f32>(model, {.optimizer = muon, .group = &slow_or_frozen});
  std::vector<double> rates;
  for (const auto& s : p.steps)
    if (s.op == &isotope::info<isotope::op::muon>) rates.push_back(isotope::op::muon::constants::of(s.attr).rate_scale);
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 1, 1, 1, 1, 0.5}));
  for (const auto& s : p.slots) {
    const std::string_view path = s.path.view();
    if (path == "h.1.attn.c_attn.weight") { EXPECT_GE(s.moment2, 0); }
    if (path == "wpe.weight") { EXPECT_TRUE(s.trained && s.moment2 < 0); }
    if (path == "h.0.mlp.c_fc.weight") { EXPECT_FALSE(s.trained); }
  }
}

TEST(muon, keeps_no_second_moment_of_its_matrices) {
  const auto state = [](isotope::optimizer_kind o) {
    return planned<reference_f32>(model, {.optimizer = o}).totals.region[std::size_t(isotope::value_kind::moment)];
  };
  const std::int64_t matrices = 4 * 2 * (16 * 48 + 16 * 16 + 2 * 16 * 64);
  EXPECT_EQ(state(isotope::optimizer_kind::adamw) - state(muon), matrices);
}

TEST(muon, leaves_memory_and_traces_in_order) {
  for (const bool accumulate : {false, true}) {
    const training_options o{.optimizer = muon, .accumulate = accumulate};
    const auto g = isotope::plan_detail::trace_training<portable_bf16>(model, o, true);
    ASSERT_EQ(g.error.view(), "");
    const auto p = isotope::freeze(g, isotope::plan_detail::lay_out_for<portable_bf16>(g));
    EXPECT_EQ("", check_memory(g, p, isotope::kernel_table<portable_bf16>).fault);
  }
}

TEST(muon, of_micro_batches_is_the_step_of_the_big_batch) {
  constexpr int rows = 2, length = 5;
  auto parts =
      loaded<reference_f64>(planned<reference_f64>(isotope::model::gpt_loss_of{size, 1, length}, {.optimizer = muon, .accumulate = true}));
  auto whole = loaded<reference_f64>(planned<reference_f64>(isotope::model::gpt_loss_of{size, rows, length}, {.optimizer = muon}));
  const auto tokens = input_values<std::int32_t>("tokens", rows * length), targets = input_values<std::int32_t>("targets", rows * length);
  std::array<isotope::batch, rows> micro;
  for (std::size_t i = 0; i < rows; ++i)
    micro[i] = {std::span(tokens).subspan(i * length, length), std::span(targets).subspan(i * length, length)};
  const isotope::batch all{tokens, targets};
  for (int step = 1; step <= 3; ++step) {
    auto x = hyperparameters();
    x.optimizer_step = step;
    parts.step(micro, x);
    whole.step(all, x);
  }
  // The numbers are read as f32, and nearly equal numbers may be rounded differently by 2^-24.
  EXPECT_TRUE(relative_distance(read_all(parts, tensor_kind::parameter), 1, read_all(whole, tensor_kind::parameter)) <= 1e-6);
}

template <class T> struct muon_step : testing::Test {};
TYPED_TEST_SUITE(muon_step, every_target, target_name);

TYPED_TEST(muon_step, trains) {
  auto s = loaded<TypeParam>(planned<TypeParam>(isotope::model::gpt_loss_of{size, 4, 6}, {.optimizer = muon}));
  double first = 0, last = 0;
  for (int step = 1; step <= 60; ++step) {
    auto x = hyperparameters();
    x.optimizer_step = step;
    last = s.run(x).loss;
    if (step == 1) first = last;
  }
  EXPECT_GT(first, 1.5);
  EXPECT_TRUE(last <= 0.3 * first) << first << ' ' << last;
}

TYPED_TEST(muon_step, keeps_the_weights_as_they_are_rounded) {
  using E = typename TypeParam::precision::storage;
  auto s = loaded<TypeParam>(exposed<TypeParam>(planned<TypeParam>(model, {.optimizer = muon})));
  s.run(hyperparameters());
  const auto wide = read_all(s, tensor_kind::parameter);
  for (const auto& [path, w] : all_values<E>(s, "param"))
    for (std::size_t i = 0; i < w.size(); ++i) ASSERT_EQ(float(w[i]), float(E(wide.at(path)[i]))) << path;
}

TYPED_TEST(muon_step, that_has_no_finite_norm_changes_nothing) {
  auto s = loaded<TypeParam>(planned<TypeParam>(model, {.optimizer = muon}));
  s.run(hyperparameters());
  std::vector<float> w(16 * 48);
  std::size_t at = 0;
  while (s.parameters()[at].path.view() != "h.0.attn.c_attn.weight") ++at;
  ASSERT_TRUE(s.read(tensor_kind::parameter, at, w).ok());
  w[5] = NAN;
  ASSERT_TRUE(s.write(tensor_kind::parameter, at, w).ok());
  const auto weights = read_all(s, tensor_kind::parameter), moments = read_all(s, tensor_kind::moment1);
  auto x = hyperparameters();
  x.optimizer_step = 2;
  EXPECT_TRUE(s.run(x).skipped);
  for (const auto& [path, values] : read_all(s, tensor_kind::parameter)) EXPECT_TRUE(same_bits(values, weights.at(path))) << path;
  for (const auto& [path, values] : read_all(s, tensor_kind::moment1)) EXPECT_TRUE(same_bits(values, moments.at(path))) << path;
}

struct only_an_output_layer {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return mean(matmul(s.input("x", {4, 3}), s.param("w", {3, 2}, isotope::init::ones)));
  }
};
struct muon_of_a_vector {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return mean(s.param("v", {3}, {.init = isotope::init::ones, .muon = 1}) * s.input("x", {3}));
  }
};
TEST(muon, refuses_in_one_line_what_it_cannot_do) {
  const auto error = [](const auto& of, const training_options& o) {
    const auto p = isotope::plan_training<reference_f32>(of, o);
    return p.ok() ? std::string() : p.error().line();
  };
  const auto has = [](const std::string& line, std::string_view text) { return line.find(text) != line.npos ? "" : line; };
  EXPECT_EQ("", has(error(model, {.optimizer = muon, .clip = isotope::clipping::none, .update = isotope::update_policy::within_backward}),
                    "muon cannot update within_backward: set update to after_backward, or optimizer to adamw or sgd"));
  EXPECT_EQ("",
            has(error(muon_of_a_vector{}, {.optimizer = muon}), "parameter 'v' [3] is no matrix, which muon needs: leave its muon at -1"));
  EXPECT_EQ("", has(error(only_an_output_layer{}, {.optimizer = muon}), "muon finds no matrix of a hidden layer that is trained"));
}

}  // namespace muon_test
