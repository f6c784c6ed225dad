// labels: threads
#include <isotope/comm/thread_group.hpp>
#include <isotope/comm/told_communicator.hpp>
#include <isotope/comm/watchdog.hpp>

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "ranks.hpp"

namespace watchdog_test {

using isotope::errc;
using isotope::failure;
using isotope::watchdog;

/// Time that moves when the test says so. `settle` returns when the watchdog has looked at the time as it is and waits again.
class hand_clock final : public isotope::watch_clock {
 public:
  double now() override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void wait(double seconds) override {
    std::unique_lock lock(mutex_);
    asked.push_back(seconds);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return woken_; });
    woken_ = waiting_ = false;
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  void settle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ && !woken_; });
  }
  void advance(double seconds) {
    settle();
    {
      const std::lock_guard lock(mutex_);
      now_ += seconds;
      woken_ = true;
    }
    changed_.notify_all();
    settle();
  }
  /// How long the watchdog sleeps, if it does.
  double sleeps() {
    const std::lock_guard lock(mutex_);
    return waiting_ && !woken_ ? asked.back() : -1;
  }
  std::vector<double> asked;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  double now_ = 100;
  bool waiting_ = false, woken_ = false;
};

struct record {
  hand_clock clock;
  std::vector<failure> aborts, ends;
  watchdog dog{{.step_seconds = 10, .abort_seconds = 5},
               clock,
               [this](const failure& f) { aborts.push_back(f); },
               [this](const failure& f) { ends.push_back(f); }};
};

TEST(watchdog, steps_that_end_in_time_are_left_alone) {
  record r;
  for (int step = 0; step < 5; ++step) {
    const watchdog::watched w(r.dog, "step");
    r.clock.advance(9.5);
  }
  r.clock.advance(1000);
  EXPECT_TRUE(r.aborts.empty());
  EXPECT_TRUE(r.ends.empty());
}
TEST(watchdog, a_step_that_hangs_is_aborted_once_and_given_up_once) {
  record r;
  r.dog.begin("step 120 of rank 3");
  r.clock.advance(9.9);
  EXPECT_TRUE(r.aborts.empty());
  r.clock.advance(0.2);
  ASSERT_EQ(r.aborts.size(), 1u);
  EXPECT_EQ(r.aborts[0].code, errc::timeout);
  EXPECT_EQ(r.aborts[0].what, "step 120 of rank 3 took longer than 10 s");
  EXPECT_TRUE(r.ends.empty());
  r.clock.advance(4.8);
  EXPECT_TRUE(r.ends.empty());
  r.clock.advance(0.2);
  ASSERT_EQ(r.ends.size(), 1u);
  EXPECT_EQ(r.ends[0].what, "step 120 of rank 3 did not end within 5 s after its timeout");
  r.clock.advance(1000);
  EXPECT_EQ(r.aborts.size(), 1u);
  EXPECT_EQ(r.ends.size(), 1u);
}
TEST(watchdog, a_step_that_ends_after_its_abort_is_not_given_up) {
  record r;
  r.dog.begin("step 1");
  r.clock.advance(11);
  EXPECT_EQ(r.aborts.size(), 1u);
  r.dog.end();
  r.clock.advance(100);
  EXPECT_TRUE(r.ends.empty());
  r.dog.begin("step 2");
  r.clock.advance(11);
  ASSERT_EQ(r.aborts.size(), 2u);
  EXPECT_EQ(r.aborts[1].what, "step 2 took longer than 10 s");
}
TEST(watchdog, a_step_may_have_a_limit_of_its_own_and_say_what_it_does) {
  record r;
  r.dog.begin("saving", 30);
  r.dog.tell("was writing 'a'");
  r.clock.advance(29);
  EXPECT_TRUE(r.aborts.empty());
  r.dog.tell("was writing 'b'");
  r.clock.advance(2);
  ASSERT_EQ(r.aborts.size(), 1u);
  EXPECT_EQ(r.aborts[0].what, "saving took longer than 30 s: it was writing 'b'");
  r.clock.advance(5);
  ASSERT_EQ(r.ends.size(), 1u);
  EXPECT_EQ(r.ends[0].what, "saving did not end within 5 s after its timeout: it was writing 'b'");
  r.dog.begin("step 2");
  r.clock.advance(11);
  ASSERT_EQ(r.aborts.size(), 2u);
  EXPECT_EQ(r.aborts[1].what, "step 2 took longer than 10 s");
}
TEST(watchdog, a_step_that_waits_for_other_ranks_has_more_time) {
  record r;
  r.dog.begin("saving");
  r.dog.tell("waited for the other ranks", true);
  r.clock.advance(14);
  EXPECT_TRUE(r.aborts.empty());
  r.dog.tell("was writing");  // after its time
  r.clock.settle();
  ASSERT_EQ(r.aborts.size(), 1u);
  EXPECT_EQ(r.aborts[0].what, "saving took longer than 10 s: it was writing");
  r.dog.begin("saving again");
  r.dog.tell("waited for the other ranks", true);
  r.clock.advance(15.5);
  ASSERT_EQ(r.aborts.size(), 2u);
  EXPECT_EQ(r.aborts[1].what, "saving again took longer than 10 s: it waited for the other ranks");
}
TEST(watchdog, the_rank_that_hangs_is_named_and_not_one_that_waits_for_it) {
  isotope::thread_group group(2);
  hand_clock clocks[2];
  std::atomic<int> aborts{0};
  std::atomic<bool> passed{false};
  std::thread time([&] {
    while (clocks[0].sleeps() != 15 || clocks[1].sleeps() != 10) std::this_thread::yield();  // rank 0 waits, and rank 1 works
    clocks[0].advance(11);
    clocks[1].advance(11);
    passed = true;
    passed.notify_all();
  });
  comm_test::on_ranks(
      2, [&](int rank) { return group.join(rank); },
      [&](isotope::communicator& c) {
        const std::string name = "saving on rank " + std::to_string(c.rank()), doing = "was writing";
        watchdog dog(
            {.step_seconds = 10, .abort_seconds = 5}, clocks[c.rank()],
            [&](const failure& f) {
              c.abort(f);
              ++aborts;
              aborts.notify_all();
            },
            [](const failure&) {});
        const watchdog::watched step(dog, name, 0, doing);
        isotope::told_communicator end(c, dog, doing);
        if (c.rank() == 1) aborts.wait(0);
        comm_test::expect_failure(
            end.barrier(), c.rank() == 1 ? errc::timeout : errc::peer_lost,
            std::string(c.rank() == 1 ? "" : "rank 1 ended the group: ") + "saving on rank 1 took longer than 10 s: it was writing");
        passed.wait(false);  // the clocks settle while the watchdogs live
      });
  time.join();
  EXPECT_EQ(aborts, 1);
}
TEST(watchdog, it_sleeps_until_the_next_deadline) {
  record r;
  r.clock.settle();
  r.dog.begin("step 1");
  r.clock.settle();
  EXPECT_EQ(r.clock.asked.back(), 10);
  r.clock.advance(4);
  EXPECT_EQ(r.clock.asked.back(), 6);
}
TEST(watchdog, it_ends_a_group_of_which_one_rank_hangs) {
  isotope::thread_group group(2);
  std::atomic<bool> ended{false};
  comm_test::on_ranks(
      2, [&](int rank) { return group.join(rank); },
      [&](isotope::communicator& c) {
        if (c.rank() == 1) {
          ended.wait(false);
          comm_test::expect_failure(c.state(), errc::peer_lost, "rank 0 ended the group: step 7 of rank 0 took longer than 10 s");
        } else {
          hand_clock clock;
          watchdog dog({.step_seconds = 10}, clock, [&](const failure& f) { c.abort(f); }, [](const failure&) {});
          const watchdog::watched step(dog, "step 7 of rank 0");
          std::thread time([&] { clock.advance(11); });
          comm_test::expect_failure(c.barrier(), errc::timeout, "step 7 of rank 0 took longer than 10 s");
          time.join();
          ended = true;
          ended.notify_all();
        }
      });
}
TEST(watchdog, the_clock_of_the_machine_wakes_when_asked) {
  isotope::machine_clock clock;
  std::atomic<int> aborts{0};
  watchdog dog(
      {.step_seconds = 0, .abort_seconds = 3600}, clock,
      [&](const failure&) {
        ++aborts;
        aborts.notify_all();
      },
      [](const failure&) {});
  dog.begin("a step without time");
  aborts.wait(0);
  EXPECT_EQ(aborts.load(), 1);
}

}  // namespace watchdog_test
