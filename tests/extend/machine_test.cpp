// Machines can be composed: one model source runs on a recorder, on an op-by-op machine, and on a user's machine that wraps either.
#include "logging_machine.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/eager/eager.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace machine_test {
namespace iso = isotope;
using here = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;

struct loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto h = tanh(iso::nn::linear(s / "hidden", s.input("x", {2, 3}), 4, 0.5));  // (2, 4)
    return mean(square(h));
  }
};
const std::vector<std::string> applied{"permute", "matmul", "add", "tanh", "square", "mean"};

static_assert(iso::Machine<user::logging<iso::graph<here>>> && iso::Machine<user::logging<user::logging<iso::graph<here>>>>);

TEST(logging_machine, notes_the_ops_of_a_recorded_model) {
  user::logging<iso::graph<here>> m;
  const auto y = loss{}(iso::scope<decltype(m)>{&m, {}});
  EXPECT_TRUE(y.valid());
  EXPECT_EQ(m.log, applied);
}

TEST(logging_machine, notes_the_ops_of_a_model_that_runs_and_changes_no_bit) {
  const std::vector<float> x{1, -2, 3, 0.5f, 0.25f, -1};
  iso::eager<here> plain(5);
  user::logging<iso::eager<here>> logged(5);
  plain.set("x", std::span<const float>(x));
  logged.set("x", std::span<const float>(x));
  const auto a = plain.read(loss{}(iso::scope<iso::eager<here>>{&plain, {}}));
  const auto b = logged.read(loss{}(iso::scope<decltype(logged)>{&logged, {}}).id);
  EXPECT_EQ(logged.log, applied);
  EXPECT_GT(a.at(0), 0);
  EXPECT_EQ(a, b);
}

TEST(logging_machine, wraps_itself) {
  user::logging<user::logging<iso::graph<here>>> m;
  loss{}(iso::scope<decltype(m)>{&m, {}});
  EXPECT_EQ(m.log, applied);
  EXPECT_EQ(static_cast<user::logging<iso::graph<here>>&>(m).log, applied);
}
}  // namespace machine_test
