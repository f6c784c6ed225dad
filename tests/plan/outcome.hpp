#pragma once
/// The outcome of one step of a program, and its input data, which is a pure function of names and positions.
#include <isotope/plan/program.hpp>

#include "targets.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plan_test {

inline constexpr std::uint64_t data_seed = 7;

/// Element i of the input `label`: in [-1, 1) for floating types, in [0, 4) for ids.
template <class E> E input_value(std::string_view label, std::uint64_t i) {
  const auto word = isotope::philox(data_seed, i, 0, isotope::stream_of(label))[0];
  if constexpr (std::is_integral_v<E>) return E(word % 4);
  else if constexpr (std::is_same_v<E, isotope::bfloat16>) return E(2 * isotope::unit_interval(word) - 1);
  else return E(2 * isotope::unit_interval(word) - 1);
}
template <class E> std::vector<E> input_values(std::string_view label, std::int64_t count) {
  std::vector<E> r;
  for (std::int64_t i = 0; i < count; ++i) r.push_back(input_value<E>(label, std::uint64_t(i)));
  return r;
}

template <class T> using session_of = typename isotope::device<T>::session;

template <class Session> void fill_inputs(Session& s) {
  using T = typename Session::target;
  const auto fill = [&]<class E>(std::string_view label, E) {
    const auto to = s.template input<E>(label);
    ASSERT_TRUE(to.ok());
    for (std::size_t i = 0; i < to->size(); ++i) (*to)[i] = input_value<E>(label, i);
  };
  for (const auto& p : s.plan().inputs)
    if (p.where.type == isotope::dtype::i32) fill(p.label.view(), std::int32_t{});
    else fill(p.label.view(), typename T::precision::storage{});
}

/// Numbers by parameter path.
using tensors = std::map<std::string, std::vector<float>>;
struct outcome {
  double loss = 0, norm = 0;
  tensors gradients, parameters;
};

/// Compares bits, so -0 differs from 0 and NaN equals itself.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  return true;
}
/// The first difference of two outcomes; empty: none.
inline std::string difference(const outcome& a, const outcome& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  if (bits(a.loss) != bits(b.loss)) return "losses " + std::to_string(a.loss) + " and " + std::to_string(b.loss);
  if (bits(a.norm) != bits(b.norm)) return "gradient norms " + std::to_string(a.norm) + " and " + std::to_string(b.norm);
  const auto compare = [](const tensors& x, const tensors& y, const char* what) {
    if (x.size() != y.size()) return std::string("numbers of ") + what;
    for (const auto& [path, values] : x)
      if (const auto other = y.find(path); other == y.end() || !same_bits(values, other->second)) return std::string(what) + " of " + path;
    return std::string();
  };
  const auto gradients = compare(a.gradients, b.gradients, "gradients");
  return gradients.empty() ? compare(a.parameters, b.parameters, "parameters") : gradients;
}

template <class Session> tensors read_all(const Session& s, isotope::tensor_kind what) {
  tensors r;
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    std::vector<float> values(std::size_t(s.parameters()[k].dims.count()));
    if (s.read(what, k, values).ok()) r[std::string(s.parameters()[k].path.view())] = values;
  }
  return r;
}

/// A session of a plan, with parameters initialised by seed 3 and all inputs filled.
template <isotope::Target T> session_of<T> loaded(isotope::dynamic_plan plan, isotope::dynamic_plan evaluation = {}) {
  auto device = opened<T>(1);
  if (!device) throw std::runtime_error(device.error().line());  // fails the test, also inside a property
  auto s = device->load(std::move(plan), std::move(evaluation));
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().line());
  s->initialize(3);
  fill_inputs(*s);
  return std::move(*s);
}

/// Scalars of a step that changes parameters by a visible amount.
inline isotope::step_scalars scalars() {
  isotope::step_scalars x;
  x.seed = 11;
  x.counter = 5;
  x.learning_rate = 0.01f;
  x.weight_decay = 0.1f;
  return x;
}

/// Runs one step of a session and reads the outcome.
template <class Session> outcome step(Session& s, const isotope::step_scalars& x = scalars()) {
  outcome r;
  const auto report = s.run(x);
  r.loss = report.loss;
  r.norm = report.grad_norm;
  r.gradients = read_all(s, isotope::tensor_kind::gradient);
  r.parameters = read_all(s, isotope::tensor_kind::parameter);
  return r;
}
template <isotope::Target T> outcome step(isotope::dynamic_plan plan) {
  auto s = loaded<T>(std::move(plan));
  return step(s);
}

/// Makes a plan; fails the test if that is refused.
template <isotope::Target T, class Model> isotope::dynamic_plan planned(const Model& model, const isotope::training_options& o = {}) {
  auto p = isotope::plan_training<T>(model, o);
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().line());
  return p.ok() ? std::move(*p) : isotope::dynamic_plan{};
}

}  // namespace plan_test
