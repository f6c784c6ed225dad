/// The harness against a device with planted mistakes: each must be found, and a device without any must pass.
#include "toy.hpp"

namespace {

using namespace toy;
using conform::outcome, conform::test_case, conform::verdict;

std::vector<outcome> judged(mistake m, const std::vector<test_case>& cases) {
  toy_device d(m);
  conform::batch_runner r(d);
  auto o = r.run(cases);
  EXPECT_TRUE(o.ok());
  return o.ok() ? *o : std::vector<outcome>(cases.size());
}
std::string reason_of(mistake m) {
  const auto o = judged(m, {case_of({64}), case_of({5, 7}, 1), case_of({256}, 2)});
  for (const outcome& x : o)
    if (x.is == verdict::failed) return x.reason + ". Fix: " + x.fix;
  return "";
}

TEST(conform_runner, a_device_without_mistakes_passes) { EXPECT_EQ(reason_of(mistake::none), ""); }
TEST(conform_runner, a_wrong_last_bit_is_found) { EXPECT_NE(reason_of(mistake::wrong_element).find("element 63 is "), std::string::npos); }
TEST(conform_runner, nan_never_passes) { EXPECT_NE(reason_of(mistake::not_a_number).find("is nan"), std::string::npos); }
TEST(conform_runner, a_write_past_the_end_is_found) { EXPECT_NE(reason_of(mistake::past_the_end).find("past the end"), std::string::npos); }
TEST(conform_runner, a_changed_operand_is_found) {
  EXPECT_NE(reason_of(mistake::writes_operand).find("changes an operand"), std::string::npos);
}
TEST(conform_runner, other_bits_in_the_second_run_are_found) {
  EXPECT_NE(reason_of(mistake::second_run).find("second run"), std::string::npos);
}
TEST(conform_runner, results_that_depend_on_the_place_are_found) {
  EXPECT_NE(reason_of(mistake::by_position).find("another place"), std::string::npos);
}
TEST(conform_runner, results_that_depend_on_leftovers_are_found) { EXPECT_NE(reason_of(mistake::reads_leftovers), ""); }
TEST(conform_runner, reads_past_the_end_of_an_operand_are_found) {
  EXPECT_NE(reason_of(mistake::reads_past_the_end).find("is nan"), std::string::npos);
}
TEST(conform_runner, every_reason_ends_in_a_fix) { EXPECT_NE(reason_of(mistake::wrong_element).find(". Fix: "), std::string::npos); }

TEST(conform_runner, a_wrong_reference_is_found) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call& c, std::span<conform::answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, 2 * c.in[0][i] + 1e-6);
  };
  test_case c = case_of({9});
  c.of = &wrong;
  EXPECT_EQ(judged(mistake::none, {c})[0].is, verdict::failed);
}
TEST(conform_runner, a_reference_of_another_size_is_found) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call&, std::span<conform::answer> y) { y[0].resize(3); };
  test_case c = case_of({9});
  c.of = &wrong;
  EXPECT_NE(judged(mistake::none, {c})[0].reason.find("has 9 elements"), std::string::npos);
}
TEST(conform_runner, outputs_beyond_the_cap_are_refused_with_their_size) {
  const auto o = judged(mistake::none, {case_of({(16 << 20) / 4 + 1}), case_of({3})});
  EXPECT_NE(o[0].reason.find("16777220 bytes"), std::string::npos) << o[0].reason;
  EXPECT_EQ(o[1].is, verdict::passed);
}
TEST(conform_runner, a_batch_is_one_plan) {
  toy_device d;
  conform::batch_runner r(d);
  std::vector<test_case> cases;
  for (std::uint64_t k = 0; k < 300; ++k) cases.push_back(case_of({3}, k));
  ASSERT_TRUE(r.run(cases).ok());
  EXPECT_EQ(r.counters().batches, 1);
  EXPECT_EQ(r.counters().dispatched, 300);
  EXPECT_EQ(r.counters().submissions, 2);  // the plain plan runs twice
  EXPECT_EQ(d.loads, 2);                   // plain and perturbed
}

conform::run_options options_of(conform::strength how = conform::strength::fast) {
  conform::run_options o;
  o.cases = {{conform::find_spec("twice")}, iso::dtype::f32, how, 1, 1};
  return o;
}
conform::tally counted(conform::run_options o, mistake m = mistake::none) {
  toy_device d(m);
  conform::silent_progress heard;
  auto t = conform::conformance_run(d, std::move(o), heard).run();
  EXPECT_TRUE(t.ok()) << (t.ok() ? "" : t.error().line());
  return t.ok() ? *t : conform::tally{};
}
TEST(conform_run, batches_are_as_many_as_it_takes) {
  toy_device d;
  auto o = options_of();
  o.batch = 4;
  o.batch_elems = std::int64_t(1) << 40;
  conform::silent_progress heard;
  conform::conformance_run run(d, o, heard);
  const auto t = run.run();
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(run.counters().batches, (t->total().cases() + 3) / 4);
  EXPECT_EQ(t->total().passed, t->total().cases());
}
TEST(conform_run, batches_out_of_range_are_refused) {
  for (const std::int64_t n : {std::int64_t(0), std::int64_t(-1), conform::largest_batch + 1}) {
    toy_device d;
    auto o = options_of();
    o.batch = n;
    conform::silent_progress heard;
    EXPECT_FALSE(conform::conformance_run(d, o, heard).run().ok());
  }
}
TEST(conform_run, shards_are_disjoint_and_together_the_whole) {
  const auto whole = counted(options_of(), mistake::wrong_element);
  EXPECT_GT(whole.total().failed, 0);
  for (std::int64_t n = 1; n <= 7; ++n) {
    conform::tally sum;
    for (std::int64_t i = 0; i < n; ++i) {
      auto o = options_of();
      o.shard = *conform::make_shard(i, n);
      sum.add(counted(o, mistake::wrong_element));
    }
    EXPECT_EQ(conform::json_of(sum), conform::json_of(whole)) << n;
  }
  EXPECT_FALSE(conform::make_shard(0, 0).ok());
  EXPECT_FALSE(conform::make_shard(3, 3).ok());
  EXPECT_FALSE(conform::make_shard(-1, 3).ok());
}
TEST(conform_run, skipping_leaves_out_the_first_cases_and_no_others) {
  const auto all = counted(options_of()).total().cases();
  auto o = options_of();
  o.skip = 5;
  EXPECT_EQ(counted(o).total().cases(), all - 5);
  o.skip = ~std::uint64_t(0);
  EXPECT_EQ(counted(o).total().cases(), 0);
}
TEST(conform_run, progress_is_told_once_an_interval_and_at_the_end) {
  toy_device d;
  auto o = options_of();
  o.progress_interval = 10;
  o.batch = 3;
  std::vector<std::uint64_t> told;
  conform::progress_callback heard([&](const conform::progress& p) { told.push_back(p.done); });
  const auto t = conform::conformance_run(d, o, heard).run();
  ASSERT_TRUE(t.ok());
  const auto n = std::uint64_t(t->total().cases());
  ASSERT_EQ(told.size(), n / 10 + 1);
  for (std::size_t k = 0; k + 1 < told.size(); ++k) EXPECT_EQ(told[k], 10 * (k + 1));
  EXPECT_EQ(told.back(), n);
}
TEST(conform_run, failures_are_kept_as_records_that_run_again) {
  const auto t = counted(options_of(), mistake::wrong_element);
  ASSERT_FALSE(t.failures.empty());
  EXPECT_LE(t.failures.size(), conform::tally::failures_kept);
  const auto j = iso::io::parse_json(t.failures.begin()->second, "record");
  ASSERT_TRUE(j.ok());
  EXPECT_NE(j->find("line")->text.find(". Fix: "), std::string::npos);
  const auto c = conform::read_record(*j->find("case"));
  ASSERT_TRUE(c.ok()) << c.error().line();
  EXPECT_EQ(judged(mistake::none, {*c})[0].is, verdict::passed);
  EXPECT_EQ(judged(mistake::wrong_element, {*c})[0].is, verdict::failed);
}
TEST(conform_run, known_failures_run_first_and_count_apart) {
  auto o = options_of();
  o.first = {case_of({65})};
  const auto good = counted(o), bad = counted(o, mistake::wrong_element);
  EXPECT_EQ(good.regressions.size(), 1u);
  EXPECT_EQ(good.failed(), 0);
  EXPECT_EQ(bad.failed(), bad.total().failed + 1);
}

}  // namespace
