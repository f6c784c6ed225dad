/// When a waiting thread looks again.
#include <isotope/backend/cuda/usual_times.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace {

struct waited {
  int looks = 0;
  double late = 0;  // seconds between the end and the look that found it
};
/// A wait for work of `seconds`, with a clock that only sleeps move.
waited wait_for(isotope::cuda::usual_times& times, const void* work, double seconds) {
  double at = 0, before = 0;
  for (waited w;;) {
    ++w.looks;
    if (at >= seconds) {
      w.late = at - seconds;
      times.add(work, before, at);
      return w;
    }
    before = at;
    at += times.pause(work, at);
  }
}
constexpr int a = 0, b = 0;

TEST(usual_times, work_that_comes_again_is_found_in_time_after_few_looks) {
  for (const double seconds : {100e-6, 400e-6, 5e-3, 10e-3, 60e-3, 2.0}) {
    isotope::cuda::usual_times times;
    for (int run = 0; run < 4; ++run) static_cast<void>(wait_for(times, &a, seconds));
    for (int run = 0; run < 50; ++run) {
      const double takes = seconds * (1 + 0.01 * std::sin(run));
      const auto w = wait_for(times, &a, takes);
      EXPECT_LE(w.late, std::max(takes / 100, 5e-6)) << seconds << ", run " << run;
      EXPECT_LE(w.looks, 24 + int(takes / 20e-3)) << seconds << ", run " << run;
    }
  }
}
TEST(usual_times, work_with_more_behind_it_is_found_after_few_looks_and_its_end_is_noticed_within_a_tenth_of_its_time) {
  for (const double seconds : {1e-3, 20e-3, 200e-3}) {
    isotope::cuda::usual_times times;
    int looks = 0;
    for (int run = 0; run < 60; ++run) {
      const double takes = seconds * (1 + 0.01 * std::sin(run));
      double at = 0, before = 0;
      for (;;) {
        looks += run >= 10;
        if (at >= takes) break;
        before = at;
        at += isotope::cuda::usual_times::long_pause(times.of(&a), at);
      }
      if (run >= 10) { EXPECT_LE(at - takes, seconds / 10) << seconds << ", run " << run; }
      times.add_after_long_pause(&a, before, at);
    }
    EXPECT_LE(looks, 50 * 5 / 2) << seconds << ", with the look as soon as the wait begins";
  }
}
TEST(usual_times, other_work_does_not_disturb) {
  isotope::cuda::usual_times times;
  for (int run = 0; run < 8; ++run) {
    static_cast<void>(wait_for(times, &a, 50e-3));
    const auto w = wait_for(times, &b, 1e-3);
    if (run >= 4) { EXPECT_LE(w.late, 20e-6); }
  }
}
TEST(usual_times, work_that_became_faster_is_slept_through_a_few_times_at_most) {
  isotope::cuda::usual_times times;
  for (int run = 0; run < 4; ++run) static_cast<void>(wait_for(times, &a, 20e-3));
  int late = 0;
  for (int run = 0; run < 40; ++run) late += wait_for(times, &a, 10e-3).late > 200e-6;
  EXPECT_LE(late, 8);
}
TEST(usual_times, no_sleep_is_longer_than_a_fiftieth_of_a_second) {
  isotope::cuda::usual_times times;
  times.add(&a, 100, 101);
  EXPECT_LE(times.pause(&a, 0), 0.02);
  EXPECT_LE(times.pause(&b, 1000), 0.02);
}
TEST(usual_times, a_thread_does_not_sleep_while_it_waits_for_work_of_less_than_200_us_unless_that_takes_much_longer_than_usual) {
  using isotope::cuda::usual_times;
  EXPECT_TRUE(usual_times::spins(60e-6, 0));
  EXPECT_TRUE(usual_times::spins(60e-6, 300e-6));
  EXPECT_FALSE(usual_times::spins(60e-6, 1e-3));
  EXPECT_FALSE(usual_times::spins(0, 10e-6)) << "it was never seen";
  EXPECT_FALSE(usual_times::spins(1e-3, 0));
}
#if defined(__linux__)
TEST(short_sleeps, leave_the_thread_as_it_was) {
  const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  {
    const isotope::cuda::short_sleeps precise;
    if (before > 0) { EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1); }
  }
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), before);
}
#endif

}  // namespace
