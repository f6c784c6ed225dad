#include "exposed.hpp"

#include <isotope/model/all.hpp>

#include <algorithm>
#include <cmath>

using namespace plan_test;

namespace gradient_check_test {

/// Fills every parameter with numbers of magnitude 1/2, so that no gradient is small because of initial values.
void randomize(session_of<reference_f64>& s) {
  for (std::size_t k = 0; k < s.parameters().size(); ++k) {
    const auto& slot = s.parameters()[k];
    std::vector<float> v = input_values<float>(slot.path.view(), slot.dims.count());
    for (auto& x : v) x *= 0.5f;
    ASSERT_TRUE(s.write(isotope::tensor_kind::parameter, k, v).ok());
  }
}

/// The largest difference between gradients of a whole model and difference quotients, relative to the tolerance of 1e-6; at most 1 if they are right.
///
/// g ~ (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / (12 h) with h = 1e-3. The truncation error is h^4 f'''''/30 ~ 1e-13 for derivatives of
/// order 1; that of the f64 loss (magnitude 3, about 100 roundings) is about 1e-14 3 / h = 3e-11. The absolute tolerance is 1e-9.
/// `wrong`, if not empty, names a parameter whose gradient is changed by a thousandth.
template <class Model> double worst_gradient(const Model& model, std::string_view wrong = {}) {
  constexpr double h = 1e-3, relative = 1e-6, absolute = 1e-9;
  auto s = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, {.optimizer = isotope::optimizer_kind::none})));
  randomize(s);
  s.run(scalars());
  auto gradients = all_values<double>(s, "grad");
  double worst = 0;
  for (auto& [path, g] : gradients) {
    if (path == wrong)
      for (auto& x : g) x *= 1.001;
    const auto w = values<double>(s, "param", path);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double middle = w[i];
      const auto loss = [&](double step) {
        w[i] = middle + step;
        return s.run(scalars()).loss;
      };
      const double quotient = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
      w[i] = middle;
      const double error = std::fabs(g[i] - quotient) / (relative * std::fabs(quotient) + absolute);
      if (std::isnan(error)) return error;  // NaN is the worst error
      worst = std::max(worst, error);
    }
  }
  return worst;
}

constexpr isotope::model::gpt_loss_of gpt{{1, 2, 8, 7, 4}, 1, 3};
constexpr isotope::model::mlp_loss_of mlp{{3, 6, 2, 4}, 5};

TEST(whole_model_gradient, of_gpt_equals_its_difference_quotients) { EXPECT_TRUE(worst_gradient(gpt) <= 1); }

TEST(whole_model_gradient, of_gpt_with_dropout_equals_its_difference_quotients) {
  auto model = gpt;
  model.size.dropout = 0.2;
  EXPECT_TRUE(worst_gradient(model) <= 1);
}

TEST(whole_model_gradient, of_mlp_equals_its_difference_quotients) { EXPECT_TRUE(worst_gradient(mlp) <= 1); }

TEST(whole_model_gradient, check_catches_an_error_of_a_thousandth) { EXPECT_GT(worst_gradient(mlp, "hidden.1.weight"), 1); }

}  // namespace gradient_check_test
