#pragma once
/// Compares gradients of random models with difference quotients in f64.
#include "exposed.hpp"
#include "random_model.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace plan_test {

/// A random model without casts to f32, since the difference quotients of a loss that is rounded to 24 bits are useless.
inline random_model without_casts(random_model m) {
  std::erase_if(m.lines, [](const random_line& l) { return l.op % random_ops == random_ops - 1; });
  return m;
}

struct gradient_facts {
  std::string fault;  // the first one; empty: none
  int compared = 0;   // how many parameters were compared
  int kinks = 0;      // how many were not, because the loss has a kink nearby, e.g. from relu or a maximum
};

/// For each trained parameter w, compares its gradient g along a random direction d with a difference quotient of the loss:
///
///   q(h) = (8 (f(w + h d) - f(w - h d)) - (f(w + 2 h d) - f(w - 2 h d))) / (12 h),   |g . d - q(h / 2)| <= 1e-4 |q(h / 2)| + 1e-8 (1 + |f|)
///
/// with h = 2e-4. The truncation error is h^4 |d f'''''| / 30. If q(h) and q(h / 2) differ by 1e-5 |q| + 1e-9 (1 + |f|) or more, the loss is too curved
/// there or has a kink, and the parameter is skipped; this depends on the loss alone, not on the gradient. The loss has an error of some 100 roundings,
/// 2e-14 (1 + |f|), so q has one of 3e-10 (1 + |f|). A gradient that is wrong by a factor of 1.01, or lacks a term of 1e-4 of the whole, fails.
///
/// `change`, if given, is called with path and numbers of each gradient and may make it wrong.
inline gradient_facts check_gradients(const random_model& model, std::uint64_t seed,
                                      const std::function<void(const std::string&, std::vector<double>&)>& change = {}) {
  constexpr double h = 2e-4;
  gradient_facts facts;
  auto s = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, {.optimizer = isotope::optimizer_kind::none})));
  const double middle = s.run(scalars()).loss, scale = 1 + std::fabs(middle);
  auto gradients = all_values<double>(s, "grad");
  for (auto& [path, g] : gradients) {
    if (change) change(path, g);
    const auto w = values<double>(s, "param", path);
    const std::vector<double> start(w.begin(), w.end());
    std::vector<double> d;
    for (std::size_t i = 0; i < w.size(); ++i)
      d.push_back(2 * isotope::unit_interval(isotope::philox(seed, i, 0, isotope::stream_of(path))[0]) - 1);
    const auto loss = [&](double step) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = start[i] + step * d[i];
      return s.run(scalars()).loss;
    };
    const auto quotient = [&](double x) { return (8 * (loss(x) - loss(-x)) - (loss(2 * x) - loss(-2 * x))) / (12 * x); };
    const double wide = quotient(h), q = quotient(h / 2);
    std::copy(start.begin(), start.end(), w.begin());
    if (!(std::fabs(wide - q) <= 1e-5 * std::fabs(q) + 1e-9 * scale)) {
      ++facts.kinks;
      continue;
    }
    double along = 0;
    for (std::size_t i = 0; i < w.size(); ++i) along += g[i] * d[i];
    ++facts.compared;
    if (!(std::fabs(along - q) <= 1e-4 * std::fabs(q) + 1e-8 * scale) && facts.fault.empty())
      facts.fault = "the gradient of " + path + " gives " + std::to_string(along) + ", differences of the loss " + std::to_string(q);
  }
  return facts;
}

}  // namespace plan_test
