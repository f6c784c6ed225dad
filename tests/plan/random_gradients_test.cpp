#include "random_gradients.hpp"

#include "property.hpp"

using namespace plan_test;

namespace random_gradients_test {

TEST(random_gradients, equal_difference_quotients) {
  int compared = 0, kinks = 0;
  check_property(20261124, 400, 24, [&] {
    const auto facts = check_gradients(without_casts(*random_models()), 1);
    compared += facts.compared;
    kinks += facts.kinks;
    RC_ASSERT(facts.fault == "");
  });
  EXPECT_GE(compared, 1600);
  EXPECT_LE(10 * kinks, compared + kinks);  // most parameters have a difference quotient; otherwise the check would be meaningless
}

// The check itself must find wrong gradients. Gradients below 10^-3 are excluded, since the absolute tolerance covers a hundredth of them.

TEST(random_gradients_check, catches_a_factor_of_1_01_and_a_missing_element_in_any_parameter) {
  int wrong = 0, caught = 0;
  check_property(20261125, 20, 24, [&] {
    const auto model = without_casts(*random_models());
    std::vector<std::string> paths;
    static_cast<void>(check_gradients(model, 1, [&](const std::string& path, std::vector<double>& g) {
      double size = 0;
      for (const double x : g) size = std::max(size, std::fabs(x));
      if (size > 1e-3) paths.push_back(path);
    }));
    for (const auto& chosen : paths)
      for (const bool scaled : {true, false}) {
        ++wrong;
        const auto smaller = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
        caught += !check_gradients(model, 1, [&](const std::string& path, std::vector<double>& g) {
                     if (path == chosen && scaled)
                       for (auto& x : g) x *= 1.01;
                     else if (path == chosen) *std::max_element(g.begin(), g.end(), smaller) = 0;
                   }).fault.empty();
      }
  });
  EXPECT_GE(wrong, 80);
  EXPECT_EQ(caught, wrong);
}

}  // namespace random_gradients_test
