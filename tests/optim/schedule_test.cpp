#include <isotope/optim/schedule.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace optim = isotope::optim;

namespace schedule_test {

// Every value below takes a few f64 operations, so its error is a few times 2^-53 of the peak.
constexpr double tolerance = 1e-15;

void expect_rate(double got, double want) {
  EXPECT_TRUE(std::fabs(got - want) <= tolerance * std::fmax(1.0, std::fabs(want))) << got << " vs " << want;
}

TEST(schedule, constant_is_the_same_at_every_step) {
  for (std::int64_t t : {-1, 0, 1, 1000000}) EXPECT_EQ(rate(optim::constant{3e-4}, t), 3e-4);
}

TEST(schedule, linear_hits_both_ends_and_the_middle_and_stays_at_the_end) {
  constexpr optim::linear s{1.0, 0.5, 10};
  expect_rate(rate(s, 0), 1.0);
  expect_rate(rate(s, 1), 0.95);
  expect_rate(rate(s, 5), 0.75);
  EXPECT_EQ(rate(s, 10), 0.5);
  EXPECT_EQ(rate(s, 11), 0.5);
  EXPECT_EQ(rate(s, -3), 1.0);
}

TEST(schedule, a_range_of_no_steps_is_at_its_end) {
  EXPECT_EQ(rate(optim::linear{1.0, 0.5, 0}, 0), 0.5);
  expect_rate(rate(optim::cosine{1.0, 0.5, 0}, 0), 0.5);
}

TEST(schedule, cosine_matches_hand_values) {
  constexpr optim::cosine s{1.0, 0.2, 12};
  expect_rate(rate(s, 0), 1.0);
  expect_rate(rate(s, 2), 0.2 + 0.8 * (1 + std::sqrt(3.0) / 2) / 2);  // cos 30 degrees
  expect_rate(rate(s, 3), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2);      // cos 45
  expect_rate(rate(s, 4), 0.2 + 0.8 * 0.75);                          // cos 60
  expect_rate(rate(s, 6), 0.6);
  expect_rate(rate(s, 8), 0.2 + 0.8 * 0.25);
  expect_rate(rate(s, 12), 0.2);
  expect_rate(rate(s, 100), 0.2);
}

TEST(schedule, cosine_series_agrees_with_libm_over_its_range) {
  for (int i = 0; i <= 1000; ++i) {
    const double x = optim::detail::pi * i / 1000;
    EXPECT_TRUE(std::fabs(optim::detail::cosine_of(x) - std::cos(x)) <= 1e-15) << x;
  }
}

TEST(schedule, step_decay_drops_on_the_multiple_and_not_before) {
  constexpr optim::step_decay s{1.0, 0.5, 30};
  EXPECT_EQ(rate(s, 0), 1.0);
  EXPECT_EQ(rate(s, 29), 1.0);
  EXPECT_EQ(rate(s, 30), 0.5);
  EXPECT_EQ(rate(s, 59), 0.5);
  EXPECT_EQ(rate(s, 60), 0.25);
  EXPECT_EQ(rate(s, 300), std::pow(0.5, 10));
}

TEST(schedule, exponential_multiplies_each_step_down_to_its_floor) {
  constexpr optim::exponential s{2.0, 0.5, 0.3};
  EXPECT_EQ(rate(s, 0), 2.0);
  EXPECT_EQ(rate(s, 1), 1.0);
  EXPECT_EQ(rate(s, 2), 0.5);
  EXPECT_EQ(rate(s, 3), 0.3);
  EXPECT_EQ(rate(s, 1000000), 0.3);
}

TEST(schedule, wsd_warms_up_holds_and_decays) {
  constexpr optim::wsd s{1.0, 0.1, 4, 3, 9};
  expect_rate(rate(s, 0), 0.2);
  expect_rate(rate(s, 3), 0.8);
  for (std::int64_t t = 4; t <= 7; ++t) expect_rate(rate(s, t), 1.0);
  expect_rate(rate(s, 8), 0.9);
  expect_rate(rate(s, 15), 0.2);
  expect_rate(rate(s, 16), 0.1);
  expect_rate(rate(s, 99), 0.1);
}

TEST(schedule, warmup_rises_to_the_first_value_of_the_rest) {
  constexpr optim::warmup s{optim::linear{1.0, 0.0, 10}, 3};
  expect_rate(rate(s, 0), 0.25);
  expect_rate(rate(s, 2), 0.75);
  expect_rate(rate(s, 3), 1.0);
  expect_rate(rate(s, 4), 0.9);
}

TEST(schedule, composed_restarts_each_piece_at_its_own_zero) {
  constexpr optim::composed s{optim::constant{1.0}, 5, optim::composed{optim::linear{1.0, 0.0, 10}, 4, optim::constant{0.25}}};
  EXPECT_EQ(rate(s, 4), 1.0);
  EXPECT_EQ(rate(s, 5), 1.0);
  expect_rate(rate(s, 8), 0.7);
  EXPECT_EQ(rate(s, 9), 0.25);
}

// get_lr of nanoGPT with warmup 100, decay until 2000, from 1e-3 down to 1e-4:
//   it < 100: 1e-3 (it + 1) / 101;  then 1e-4 + 9e-4 (1 + cos(pi (it - 100) / 1900)) / 2.
// At it = 575 a quarter of the decay is over (cos = sqrt(1/2)), at 1050 half (cos = 0), at 1525 three quarters.
TEST(schedule, warmup_then_cosine_is_the_nanogpt_curve) {
  constexpr optim::warmup s{optim::cosine{1e-3, 1e-4, 1900}, 100};
  struct row {
    std::int64_t step;
    double rate;
  };
  const row table[] = {{0, 9.900990099009901e-06},
                       {49, 4.950495049504950e-04},
                       {99, 9.900990099009901e-04},
                       {100, 1.0e-3},
                       {575, 8.681980515339464e-04},
                       {1050, 5.5e-4},
                       {1525, 2.318019484660536e-04},
                       {2000, 1e-4},
                       {5000, 1e-4}};
  for (const row& r : table) EXPECT_TRUE(std::fabs(rate(s, r.step) - r.rate) <= 1e-17) << r.step << ": " << rate(s, r.step);
}

template <optim::warmup<optim::cosine> Schedule> constexpr double first_rate() { return rate(Schedule, 0); }

TEST(schedule, schedules_are_template_arguments_and_constant_expressions) {
  constexpr optim::warmup s{optim::cosine{1e-3, 1e-4, 1900}, 100};
  static_assert(first_rate<s>() == 1e-3 / 101);
  constexpr double at_compile_time = rate(s, 1234);
  volatile std::int64_t t = 1234;
  EXPECT_EQ(float(rate(s, t)), float(at_compile_time));
}

}  // namespace schedule_test
