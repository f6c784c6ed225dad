// Failures of a device and of a session name a fix.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/model/mlp.hpp>

#include <gtest/gtest.h>

namespace failures_test {
using namespace isotope;
using here = isotope::target<backend::cpu, precision::f32, kernels::reference>;

TEST(failures, of_a_device_and_a_session_say_how_to_fix_them) {
  const auto expect_fix = [](const auto& r, errc code) {
    ASSERT_FALSE(r);
    EXPECT_EQ(name_of(r.error().code), name_of(code));
    EXPECT_FALSE(r.error().what.empty());
    EXPECT_FALSE(r.error().fix.empty()) << r.error().line();
  };
  expect_fix(device<here>::open({.threads = -1}), errc::invalid_argument);
  expect_fix(device<here>::open({.name = "warp"}), errc::unknown_device);
  auto session = device<here>::open({.threads = 1})->load(*plan_inference<here>(model::mlp_logits_of{{}, 1}));
  ASSERT_TRUE(session);
  expect_fix(session->input<float>("pixels"), errc::not_found);
  expect_fix(session->input<double>("x"), errc::invalid_argument);
}
}  // namespace failures_test
