// labels: threads
#include <isotope/comm/mesh.hpp>
#include <isotope/comm/thread_group.hpp>

#include <atomic>
#include <memory>
#include <numeric>

#include "operations.hpp"

namespace thread_group_test {

using namespace comm_test;

class thread_group : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, thread_group, ::testing::Values(1, 2, 3, 4, 5), ::testing::PrintToStringParamName());

TEST_P(thread_group, every_operation_gives_the_bits_of_a_plain_loop) { every_operation_at_awkward_sizes<threads>(GetParam()); }
TEST_P(thread_group, two_hundred_operations_in_random_order_are_right) { two_hundred_operations_in_random_order<threads>(GetParam()); }
TEST_P(thread_group, is_sane) { a_group_is_sane<threads>(GetParam()); }

TEST(thread_group_failures, a_call_that_does_not_fit_ends_the_group) { a_call_that_does_not_fit_ends_the_group<threads>(3); }
TEST(thread_group_failures, calls_that_differ_end_the_group) { calls_that_differ_end_the_group<threads>(3); }
TEST(thread_group_failures, an_abort_wakes_every_rank) { an_abort_wakes_every_rank<threads>(4); }
TEST(thread_group_failures, an_abort_ends_a_blocked_call) { an_abort_ends_a_blocked_call<threads>(3); }
TEST(thread_group_failures, a_rank_that_left_is_named) { a_rank_that_left_is_named<threads>(4); }
TEST(thread_group_failures, a_rank_that_hangs_is_named) { a_rank_that_hangs_is_named<threads>(4); }

TEST(thread_group_failures, only_the_own_thread_may_call) {
  isotope::thread_group group(1);
  auto c = group.join(0);
  ASSERT_TRUE(c.ok());
  result<void> elsewhere;
  std::thread([&] { elsewhere = (*c)->barrier(); }).join();
  expect_failure(elsewhere, errc::invalid_argument, "another thread");
  expect_ok((*c)->barrier(), "a barrier on the own thread");
}
TEST(thread_group_failures, a_rank_joins_once_and_must_exist) {
  isotope::thread_group group(2);
  EXPECT_EQ(group.join(2).error().line(), "threads: rank 2 of 2 is asked for (fix: give a rank from 0 to 1)");
  EXPECT_EQ(group.join(-1).error().code, errc::invalid_argument);
  auto c = group.join(0);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(group.join(0).error().line(), "threads: rank 0 has joined before (fix: give every thread a rank of its own)");
  EXPECT_EQ(isotope::thread_group(0).join(0).error().code, errc::invalid_argument);
  EXPECT_EQ(isotope::thread_group(1, {.timeout_seconds = -1}).join(0).error().code, errc::invalid_argument);
}
TEST(thread_group_failures, arguments_are_checked_without_the_others) {
  const auto says = [&](auto&& f, const std::string& text) {
    isotope::thread_group group(1);
    auto c = group.join(0);
    ASSERT_TRUE(c.ok());
    expect_failure(f(**c), errc::invalid_argument, text);
  };
  alignas(8) std::byte x[24]{};
  const std::span all(x);
  says([&](communicator& c) { return c.all_reduce(all, dtype::u8, reduction::sum); }, "numbers of type u8 cannot be combined");
  says([&](communicator& c) { return c.all_reduce(all.subspan(2, 4), dtype::f32, reduction::sum); }, "2 bytes past a multiple of 4");
  says([&](communicator& c) { return c.all_gather(all.first(4), all.first(8)); }, "does not make a whole of 8 bytes");
  says([&](communicator& c) { return c.broadcast(all, 1); }, "there is no rank 1 of 1");
  isotope::thread_group two(2);
  on_ranks(
      2, [&](int r) { return two.join(r); },
      [&](communicator& c) {
        std::byte whole[16]{};
        EXPECT_FALSE(c.all_gather(std::span(whole).subspan(4, 8), whole).ok());
      });
}

/// A group that ends while some ranks work must not let go of memory that others still read.
TEST(thread_group_failures, aborts_at_any_time_leave_no_rank_behind) {
  for (int round = 0; round < 60; ++round) {
    constexpr int ranks = 3;
    isotope::thread_group group(ranks);
    std::atomic<int> running{0};
    std::thread aborting([&] {
      while (running.load() < 1 + round % (4 * ranks)) std::this_thread::yield();
      group.abort(isotope::fail(errc::interrupted, "stopped", "test", "none"));
    });
    on_ranks(
        ranks, [&](int r) { return group.join(r); },
        [&](communicator& c) {
          for (;;) {
            auto x = std::make_unique<std::vector<float>>(1000 + 100 * std::size_t(round), 1.0f);
            ++running;
            const auto r = c.all_reduce(std::as_writable_bytes(std::span(*x)), dtype::f32, reduction::sum);
            if (!r) {
              expect_failure(r, errc::interrupted, "stopped");
              break;
            }
            EXPECT_EQ(x->front(), float(ranks));
            EXPECT_EQ(x->back(), float(ranks));
          }
        });
    aborting.join();
  }
}

TEST(mesh_group, groups_of_a_mesh_hold_the_right_ranks) {
  constexpr isotope::device_mesh mesh{2, 3};
  isotope::mesh_group<isotope::thread_group> group(mesh, [](const std::string&, const std::vector<int>& members) {
    return std::make_unique<isotope::thread_group>(int(members.size()));
  });
  std::vector<std::thread> ranks;
  for (int r = 0; r < mesh.ranks(); ++r)
    ranks.emplace_back([&, r] {
      auto joined = group.join(r);
      ASSERT_TRUE(joined.ok()) << joined.error().line();
      auto& c = *joined;
      EXPECT_EQ(c.all->rank(), r);
      EXPECT_EQ(c.tensor->rank(), r % 3);
      EXPECT_EQ(c.data->rank(), r / 3);
      const auto sum = [&](communicator& in) {
        std::int32_t x[1] = {1 << r};
        expect_ok(in.all_reduce(std::as_writable_bytes(std::span(x)), dtype::i32, reduction::sum), "a sum of bits");
        return x[0];
      };
      EXPECT_EQ(sum(*c.all), 63);
      EXPECT_EQ(sum(*c.tensor), r < 3 ? 7 : 56);
      EXPECT_EQ(sum(*c.data), 9 << r % 3);
      expect_ok(c.all->barrier(), "a barrier before the end");
    });
  for (auto& t : ranks) t.join();
}
TEST(mesh_group, a_mesh_without_ranks_is_refused) {
  isotope::mesh_group<isotope::thread_group> group({2, 0}, [](const std::string&, const std::vector<int>& members) {
    return std::make_unique<isotope::thread_group>(int(members.size()));
  });
  EXPECT_EQ(group.join(0).error().line(),
            "communication: a mesh of data 2, tensor 0 has an axis of less than one rank (fix: give 1 or more for each axis)");
}

/// The sanity check must notice a group that sums wrongly.
class broken final : public communicator {
 public:
  int rank() const override { return 1; }
  int ranks() const override { return 2; }
  result<void> all_reduce(std::span<std::byte>, dtype, reduction) override { return {}; }
  result<void> all_gather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  result<void> reduce_scatter(std::span<std::byte>, std::span<std::byte>, dtype, reduction) override { return {}; }
  result<void> broadcast(std::span<std::byte>, int) override { return {}; }
  result<void> barrier() override { return {}; }
  void abort(failure why) noexcept override { aborted = std::move(why.what); }
  std::string aborted;
};
TEST(sanity, a_wrong_sum_names_the_rank) {
  broken c;
  const auto r = isotope::check_group(c);
  expect_failure(r, errc::corrupt, "rank 1 of 2: the sum of 1 over all ranks is 1.000000, not 2.000000");
  EXPECT_EQ(c.aborted, r.error().what);
}

}  // namespace thread_group_test
