/// A run of the conformance suite: the cases that it draws, counts and skips, and what it reports and saves, for any behaviour of the device.
#include "toy.hpp"

#include "../io/scratch_folder.hpp"

#include <numeric>

namespace run_test {

using namespace toy;
using conform::test_case, conform::verdict;

conform::run_options options_of(conform::strength how = conform::strength::fast) {
  conform::run_options o;
  o.cases = {{conform::find_spec("twice")}, iso::dtype::f32, how, 1, 1};
  return o;
}
conform::counts counted(conform::run_options o, mistake m = mistake::none) {
  toy_device d(m);
  conform::silent_progress heard;
  auto t = conform::conformance_run(d, std::move(o), heard).run();
  EXPECT_TRUE(t.ok()) << (t.ok() ? "" : t.error().line());
  return t.ok() ? *t : conform::counts{};
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
    conform::counts sum;
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
  const auto some = counted(o);
  EXPECT_EQ(some.total().ran(), all - 5);
  EXPECT_EQ(some.total().skipped, 5);
  EXPECT_EQ(some.total().cases(), all) << "what is skipped is counted";
  EXPECT_EQ(some.skips.at("its number is below 5"), 5);
  for (const std::uint64_t none : {conform::case_id_end, ~std::uint64_t(0)}) {
    o.skip = none;
    EXPECT_EQ(counted(o).total().ran(), 0) << none;
    EXPECT_EQ(counted(o).total().skipped, all) << none;
  }
}
TEST(conform_run, a_run_whose_device_is_lost_goes_on_where_it_was_saved) {
  iso::scratch_folder folder;
  auto o = options_of();
  o.batch = 4;
  o.checkpoint_file = folder.at("c");
  const std::string whole = conform::json_of(counted(options_of(), mistake::wrong_element));
  int lost = 0;
  for (int loads = 0;; loads += 2) {  // each batch takes two plans
    toy_device d(mistake::wrong_element, loads);
    conform::silent_progress heard;
    auto t = conform::conformance_run(d, o, heard).run();
    o.resume = true;
    if (!t) {
      ASSERT_EQ(t.error().code, iso::errc::device_lost) << t.error().line();
      ++lost;
      continue;
    }
    EXPECT_EQ(conform::json_of(*t), whole);
    break;
  }
  EXPECT_GT(lost, 2);
  // A finished run is saved with the number after the last case, so a resumed run does nothing.
  toy_device d;
  conform::silent_progress heard;
  const auto again = conform::conformance_run(d, o, heard).run();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(conform::json_of(*again), whole);
  EXPECT_EQ(d.loads, 0);
}
/// Calls read_counts on text.
bool read_text(const std::string& text, conform::counts& to) {
  const auto j = iso::io::parse_json(text, "tally");
  return j.ok() && conform::read_counts(&*j, to);
}
TEST(conform_run, every_case_is_counted_once_whatever_became_of_it) {
  struct : conform::case_visitor {
    std::int64_t n = 0;
    bool visit(test_case&&) override { return ++n > 0; }
  } all;
  conform::for_each_case(options_of().cases, all);
  for (const mistake m : {mistake::none, mistake::wrong_element, mistake::not_a_number}) {
    const conform::counts t = counted(options_of(), m);
    for (const auto& [name, o] : t.ops) EXPECT_EQ(std::accumulate(o.by_kind.begin(), o.by_kind.end(), std::int64_t(0)), o.cases()) << name;
    EXPECT_EQ(t.total().cases(), all.n);
    EXPECT_EQ(t.total().failed > 0, m != mistake::none);
    // Counts whose sums are inconsistent are refused when they are read.
    conform::counts back;
    auto text = conform::json_of(t);
    EXPECT_TRUE(read_text(text, back));
    EXPECT_EQ(conform::json_of(back), text);
    text.replace(text.find("\"passed\":"), 9, "\"passed\":1");
    EXPECT_FALSE(read_text(text, back)) << text;
  }
}
/// Collects the cases that it visits.
struct listed_cases final : conform::case_visitor {
  std::vector<test_case> all;
  bool visit(test_case&& c) override { return all.push_back(std::move(c)), true; }
};
TEST(conform_cases, boundary_values_are_in_the_cases_each_with_each) {
  listed_cases seen;
  conform::for_each_case(options_of().cases, seen);
  int found = 0;
  for (const test_case& c : seen.all) {
    if (c.given == nullptr) continue;
    ++found;
    const auto& x = (*c.given)[0].at;
    const auto expected = conform::find_spec("twice")->boundary;
    ASSERT_EQ(x.size(), expected.size());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(x[i] == expected[i] || (std::isnan(x[i]) && std::isnan(expected[i]))) << i;
  }
  EXPECT_EQ(found, 1);
  // For an op that is not element-wise, each finite boundary value occurs alone among the other numbers of a case.
  listed_cases amid;
  const conform::spec* twice = conform::find_spec("twice");
  conform::case_sink sink(twice, "twice", 1, iso::dtype::bf16, conform::strength::fast, 1, 1, 0, amid);
  sink.add({sink.x({3, 5}, 3, 4), sink.x({5, 2})});
  sink.add_boundaries(twice->boundary, false);
  ASSERT_EQ(amid.all.size(), 3u) << "0 and 1, of 0, 1, inf and nan";
  for (std::size_t k : {std::size_t(0), std::size_t(1)}) {
    const auto& numbers = *amid.all[k + 1].given;
    ASSERT_EQ(numbers.size(), 2u);
    EXPECT_EQ(numbers[0].at[7], double(k));
    EXPECT_EQ(std::count(numbers[0].at.begin(), numbers[0].at.end(), double(k)), 1);
    EXPECT_EQ(numbers[1].at.size(), 10u);
  }
}
TEST(conform_cases, numbers_end_before_they_would_begin_again) {
  listed_cases seen;
  const conform::spec* twice = conform::find_spec("twice");
  conform::case_sink sink(twice, "twice", 1, iso::dtype::f32, conform::strength::full, 1, 1, conform::case_id_end - 3, seen);
  twice->cases(sink);
  ASSERT_EQ(seen.all.size(), 3u);
  EXPECT_TRUE(sink.done());
  EXPECT_EQ(sink.next_id(), conform::case_id_end);
  conform::case_stream watched;
  for (const test_case& c : seen.all) watched.add(c);
  const conform::spec* ops[] = {twice};
  const auto r = watched.check(ops);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().line().find("gives number 9223372036854775806, behind which there is none"), std::string::npos) << r.error().line();
  // Without the last one, they are a valid stream.
  conform::case_stream before;
  for (std::size_t k = 0; k < 2; ++k) before.add(seen.all[k]);
  EXPECT_TRUE(before.check(ops).ok());
  // A number of repetitions that overflows int is clamped.
  conform::case_sink many(twice, "twice", 1, iso::dtype::f32, conform::strength::full, std::numeric_limits<int>::max() / 2, 1, 0, seen);
  EXPECT_EQ(many.repeats(), std::numeric_limits<int>::max());
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
  // Progress is reported whenever this many cases have run; each case takes two plans.
  o.batch = 1;
  std::vector<int> loads;
  conform::progress_callback prompt([&](const conform::progress&) { loads.push_back(d.loads); });
  d.loads = 0;
  ASSERT_TRUE(conform::conformance_run(d, o, prompt).run().ok());
  ASSERT_EQ(loads.size(), n / 10 + 1);
  for (std::size_t k = 0; k + 1 < loads.size(); ++k) EXPECT_EQ(loads[k], 20 * int(k + 1));
  told.clear();
  o.progress_interval = 0;
  ASSERT_TRUE(conform::conformance_run(d, o, heard).run().ok());
  EXPECT_EQ(told, std::vector<std::uint64_t>{n}) << "without an interval, only at the end";
  EXPECT_EQ(conform::line_of({7, 20, 1, 2}), "7 of 20 cases, 1 failed, 2 unsupported");
}
TEST(conform_run, failures_are_kept_as_records_that_run_again) {
  const auto t = counted(options_of(), mistake::wrong_element);
  ASSERT_FALSE(t.failures.empty());
  EXPECT_LE(t.failures.size(), conform::counts::failures_kept);
  const auto j = iso::io::parse_json(t.failures.begin()->second, "record");
  ASSERT_TRUE(j.ok());
  EXPECT_NE(j->find("line")->text.find(". Fix: "), std::string::npos);
  const auto c = conform::read_record(*j->find("case"));
  ASSERT_TRUE(c.ok()) << c.error().line();
  EXPECT_EQ(judged(mistake::none, {*c})[0].is, verdict::passed);
  EXPECT_EQ(judged(mistake::wrong_element, {*c})[0].is, verdict::failed);
}
TEST(conform_run, known_failures_run_before_everything_else_in_their_order_and_in_every_shard) {
  for (std::int64_t shard : {0, 1, 2}) {
    toy_device d;
    auto o = options_of();
    o.shard = *conform::make_shard(shard, 3);
    o.first = {case_of({1999}), case_of({1009}), case_of({1501})};
    conform::silent_progress heard;
    ASSERT_TRUE(conform::conformance_run(d, o, heard).run().ok());
    ASSERT_GT(d.loaded_elems.size(), 6u);
    const std::vector<std::int64_t> first(d.loaded_elems.begin(), d.loaded_elems.begin() + 6);
    EXPECT_EQ(first, (std::vector<std::int64_t>{1999, 1999, 1009, 1009, 1501, 1501})) << "plain and perturbed, shard " << shard;
    for (std::size_t k = 6; k < d.loaded_elems.size(); ++k)
      for (const std::int64_t known : {1999, 1009, 1501}) EXPECT_NE(d.loaded_elems[k], known) << "once each";
  }
}
TEST(conform_run, known_failures_run_first_and_count_apart) {
  auto o = options_of();
  o.first = {case_of({65})};
  const auto good = counted(o), bad = counted(o, mistake::wrong_element);
  EXPECT_EQ(good.regressions.size(), 1u);
  EXPECT_EQ(good.failed(), 0);
  EXPECT_EQ(bad.failed(), bad.total().failed + 1);
}

}  // namespace run_test
