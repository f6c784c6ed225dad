// labels: threads
/// Batches that run concurrently give the results of batches that run one by one, in the same order.
#include "toy.hpp"

#include "../io/scratch_folder.hpp"

#include <array>
#include <atomic>
#include <numeric>

namespace ordered_pool_test {

using namespace toy;

struct number {
  int x = 0, squared = -1;
  const void* key = nullptr;
};
struct square_of {
  std::atomic<int>* done;
  void operator()(number& job) const {
    for (int k = 0; k < job.x % 5 * 1000; ++k) std::this_thread::yield();
    job.squared = job.x * job.x;
    ++*done;
  }
};
/// A job with one of three keys, which notices if another job with its key runs at the same time.
struct one_of_a_kin {
  std::array<std::atomic<int>, 3>* busy;
  std::atomic<bool>* together;
  void operator()(number& job) const {
    if (++(*busy)[std::size_t(job.x % 3)] > 1) *together = true;
    for (int k = 0; k < 1000; ++k) std::this_thread::yield();
    --(*busy)[std::size_t(job.x % 3)];
  }
};

TEST(conform_ordered_pool, jobs_come_back_done_and_in_order_whatever_takes_longer) {
  for (const std::size_t workers : {1u, 2u, 5u}) {
    std::atomic<int> done = 0;
    conform::ordered_pool<number, square_of> c(std::vector(workers, square_of{&done}));
    int next = 0;
    const auto take = [&] {
      const auto j = c.oldest();
      EXPECT_EQ(j.x, next);
      EXPECT_EQ(j.squared, next * next);
      ++next;
    };
    for (int k = 0; k < 100; ++k) {
      c.submit({.x = k});
      while (c.size() > 20 || c.ready()) take();
    }
    while (c.size() > 0) take();
    EXPECT_EQ(next, 100);
    EXPECT_EQ(done, 100);
  }
}
TEST(conform_ordered_pool, jobs_with_the_same_key_run_one_after_another) {
  std::array<std::atomic<int>, 3> busy{};
  std::atomic<bool> together = false;
  conform::ordered_pool<number, one_of_a_kin> c(std::vector(4, one_of_a_kin{&busy, &together}));
  for (int k = 0; k < 60; ++k) c.submit({.x = k, .key = &busy[std::size_t(k % 3)]});
  for (int k = 0; k < 60; ++k) EXPECT_EQ(c.oldest().x, k);
  EXPECT_FALSE(together);
}
TEST(conform_ordered_pool, jobs_whose_results_are_not_taken_end_with_the_pool) {
  std::atomic<int> done = 0;
  {
    conform::ordered_pool<number, square_of> c(std::vector(3, square_of{&done}));
    for (int k = 0; k < 50; ++k) c.submit({.x = k});
  }
  EXPECT_LE(done, 50);
}

conform::run_options in_small_batches() {
  conform::run_options o;
  o.cases = {{conform::find_spec("twice")}, iso::dtype::f32, conform::strength::fast, 1, 1};
  o.batch = 3;
  return o;
}
/// A run on `devices` devices that make the same mistake. The last device is lost after it has loaded `loads_before_loss` plans.
iso::result<conform::counts> ran(const conform::run_options& o, int devices, mistake m, int loads_before_loss = 1 << 30) {
  std::vector<std::unique_ptr<toy_device>> all;
  std::vector<conform::executor*> more;
  for (int k = 0; k < devices; ++k) {
    all.push_back(std::make_unique<toy_device>(m, k + 1 == devices ? loads_before_loss : 1 << 30));
    if (k > 0) more.push_back(all.back().get());
  }
  conform::silent_progress heard;
  conform::conformance_run run(*all[0], o, heard, more);
  auto t = run.run();
  if (t && !o.resume) { EXPECT_EQ(run.counters().dispatched, t->total().cases()); }
  return t;
}

TEST(conform_ordered_pool, a_run_on_several_devices_counts_as_a_run_on_one) {
  for (const mistake m : {mistake::none, mistake::wrong_element, mistake::second_run}) {
    const auto one = ran(in_small_batches(), 1, m), three = ran(in_small_batches(), 3, m);
    ASSERT_TRUE(one.ok() && three.ok());
    EXPECT_EQ(conform::json_of(*three), conform::json_of(*one));
    EXPECT_EQ(one->total().failed > 0, m != mistake::none);
  }
}
TEST(conform_ordered_pool, a_run_that_loses_one_of_its_devices_goes_on_where_it_was_saved) {
  iso::scratch_folder folder;
  const auto whole = ran(in_small_batches(), 1, mistake::wrong_element);
  ASSERT_TRUE(whole.ok());
  auto o = in_small_batches();
  o.checkpoint_file = folder.at("c");
  const auto lost = ran(o, 1, mistake::wrong_element, 6);  // three batches
  ASSERT_FALSE(lost.ok());
  o.resume = true;
  const auto again = ran(o, 2, mistake::wrong_element, 0);
  if (!again) { EXPECT_EQ(again.error().code, iso::errc::device_lost) << again.error().line(); }
  const auto rest = ran(o, 3, mistake::wrong_element);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(conform::json_of(*rest), conform::json_of(*whole));
}

}  // namespace ordered_pool_test
