// labels: threads
/// Pools of device workers (DW-15): jobs of all ranks, groups, and what becomes of the others when one fails.
#include "group.hpp"
#include "rig.hpp"

using namespace worker_test;

namespace {

constexpr std::size_t ranks = 3;

std::vector<worker::worker_options> options_of_ranks() {
  std::vector<worker::worker_options> all(ranks, one_thread());
  for (std::size_t k = 0; k < ranks; ++k) all[k].index = int(k);
  return all;
}
/// A pool whose ranks have faults, and the group that it joins.
struct rig {
  std::vector<faulty> faults{ranks};
  worker::worker_pool pool;
  rig() : faults(ranks), pool(value_of(worker::worker_pool::start<here, iso::device<here>, faulty>(options_of_ranks(), copies(faults)))) {}
  iso::result<void> join(float lie = 0) {
    const auto group = std::make_shared<test_group>(int(ranks), lie);
    return pool.join([&](std::size_t rank) { return test_group::factory(group, int(rank)); });
  }
  static std::vector<faulty> copies(std::vector<faulty>& all) {
    for (auto& f : all) f = faulty();  // the elements of a filled vector share one plan
    return all;
  }
};
worker::load training_job(std::size_t) {
  auto job = worker::load_plans<here>(training_plan(), evaluation_plan());
  job.seed = 3;
  return job;
}

}  // namespace

TEST(worker_pool, starts_answers_loads_steps_and_ends) {
  rig r;
  EXPECT_EQ(r.pool.size(), ranks);
  EXPECT_EQ(r.pool[2].name(), "cpu-dev-2");
  EXPECT_EQ(value_of(r.pool.ping()).size(), ranks);
  const auto m = value_of(r.pool.load(training_job));
  const auto steps =
      value_of(r.pool.run(m, [](std::size_t, worker::model_handle part) { return worker::step{part, {batch()}, scalars()}; }));
  ASSERT_EQ(steps.size(), ranks);
  for (const auto& s : steps) EXPECT_EQ(s.loss, steps[0].loss);
  value_of(r.pool.run(m, [](std::size_t, worker::model_handle part) { return worker::clear_states{part}; }));
  value_of(r.pool.drop_model(m));
  EXPECT_EQ(code_of(r.pool.parts(m)), errc::stale_handle);
  EXPECT_EQ(code_of(r.pool.run(m, [](std::size_t, worker::model_handle part) { return worker::read{part}; })), errc::stale_handle);
  EXPECT_TRUE(r.pool.shut_down().ok());
  EXPECT_TRUE(r.pool.shut_down().ok());
  EXPECT_EQ(code_of(r.pool.ping()), errc::worker_gone);
}

// DW-09, DW-10: each rank makes its communicator on its own worker, and the sum of ones is the number of ranks.
TEST(worker_pool, ranks_join_a_group_and_check_it) {
  rig r;
  EXPECT_EQ(code_of(r.pool.check()), errc::invalid_argument);
  value_of(r.join());
  const auto reports = value_of(r.pool.check());
  for (std::size_t k = 0; k < ranks; ++k) {
    EXPECT_EQ(reports[k].rank, int(k));
    EXPECT_EQ(reports[k].ranks, int(ranks));
    EXPECT_EQ(reports[k].sum, double(ranks));
  }
  value_of(r.join(1));
  const auto wrong = r.pool.check();
  EXPECT_EQ(code_of(wrong), errc::corrupt);
  EXPECT_NE(wrong.error().line().find("rank 2"), std::string::npos) << wrong.error().line();
  EXPECT_NE(wrong.error().line().find("rank 2 of 3: the sum of 1 over all ranks is 4.000000, not 3.000000"), std::string::npos)
      << wrong.error().line();
}

// DW-15: the others wait in a collective for the rank that failed; they are told, and all answers come.
TEST(worker_pool, a_rank_that_fails_ends_the_wait_of_the_others_which_stay_usable) {
  rig r;
  value_of(r.join());
  r.faults[1].strike("check communicator", worker::fault::device_lost);
  const auto failed = r.pool.check();
  EXPECT_EQ(code_of(failed), errc::device_lost) << "the cause, and not that peers were lost";
  EXPECT_NE(failed.error().line().find("rank 1"), std::string::npos) << failed.error().line();
  EXPECT_TRUE(r.pool[1].poisoned().has_value());
  for (const std::size_t k : {std::size_t(0), std::size_t(2)}) {
    EXPECT_FALSE(r.pool[k].poisoned().has_value()) << k;
    EXPECT_TRUE(r.pool[k].submit(worker::query_memory{}).get().ok()) << k;
    load_training(r.pool[k]);
  }
  EXPECT_EQ(code_of(r.pool.ping()), errc::poisoned);
}
TEST(worker_pool, a_refused_memory_ends_the_group_but_no_worker_and_another_group_is_joined) {
  rig r;
  value_of(r.join());
  r.faults[0].strike("check communicator", worker::fault::out_of_memory);
  EXPECT_EQ(code_of(r.pool.check()), errc::out_of_memory);
  value_of(r.join());
  EXPECT_EQ(value_of(r.pool.check()).size(), ranks);
}
TEST(worker_pool, an_error_in_arguments_ends_no_group) {
  rig r;
  value_of(r.join());
  const auto m = value_of(r.pool.load(training_job));
  EXPECT_EQ(code_of(r.pool.run(m, [](std::size_t, worker::model_handle part) { return worker::step{part, {}, scalars()}; })),
            errc::invalid_argument);
  EXPECT_EQ(value_of(r.pool.check()).size(), ranks);
}
// DW-16: a rank that hangs is noticed by its watchdog, and its peers are freed.
TEST(worker_pool, a_rank_that_hangs_is_answered_and_frees_its_peers) {
  auto options = options_of_ranks();
  options[1].watch.step_timeout_seconds = 0.02;
  options[1].watch.abort_deadline_seconds = 1e6;
  std::vector<faulty> faults(ranks);
  auto pool = value_of(worker::worker_pool::start<here, iso::device<here>, faulty>(options, rig::copies(faults)));
  const auto group = std::make_shared<test_group>(int(ranks));
  value_of(pool.join([&](std::size_t rank) { return test_group::factory(group, int(rank)); }));
  faults[1].strike("check communicator", worker::fault::hung);
  const auto r = pool.check();
  EXPECT_EQ(code_of(r), errc::timeout);
  EXPECT_NE(r.error().line().find("rank 1"), std::string::npos) << r.error().line();
  EXPECT_TRUE(pool[0].submit(worker::query_memory{}).get().ok());
  EXPECT_TRUE(pool[2].submit(worker::query_memory{}).get().ok());
  faults[1].release();
}
TEST(worker_pool, a_part_that_does_not_load_drops_the_others) {
  rig r;
  r.faults[2].strike("load", worker::fault::out_of_memory);
  const auto failed = r.pool.load(training_job);
  EXPECT_EQ(code_of(failed), errc::out_of_memory);
  const auto m = load_training(r.pool[0]);
  EXPECT_EQ(m.slot, 0U) << "the place of the part that was dropped";
}
TEST(worker_pool, a_rank_that_does_not_start_is_named) {
  auto options = options_of_ranks();
  options[1].device.name = "another";
  const auto pool = worker::worker_pool::start<here>(options);
  EXPECT_EQ(code_of(pool), errc::unknown_device);
  EXPECT_NE(pool.error().line().find("rank 1"), std::string::npos) << pool.error().line();
}
