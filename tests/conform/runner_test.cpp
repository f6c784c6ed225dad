/// The harness against a device with planted mistakes: each must be found, and a device without any must pass.
#include "toy.hpp"

#include "../io/scratch_folder.hpp"

#include <numeric>

namespace runner_test {

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
/// What becomes of a device without mistakes under a wrong reference.
template <class Reference> verdict under(Reference, conform::comparison by = conform::comparison::scaled) {
  conform::spec wrong = *conform::find_spec("twice");
  wrong.reference = [](const conform::call& c, std::span<conform::answer> y) {
    y[0].resize(c.in[0].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) y[0].set(i, 2 * c.in[0][i]);
    Reference()(c, y[0]);
  };
  const conform::result_role y{"y", conform::holds::floating, by};
  wrong.outputs = {&y, 1};
  test_case c = case_of({9});
  c.of = &wrong;
  return judged(mistake::none, {c})[0].is;
}
TEST(conform_runner, broken_references_are_found) {
  using conform::answer, conform::call;
  EXPECT_EQ(under([](const call&, answer&) {}), verdict::passed);
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(0, 2 * c.in[0][1]); }), verdict::failed) << "off by one element";
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(8, c.in[0][8]); }), verdict::failed) << "another formula at one place";
  EXPECT_EQ(under([](const call&, answer& y) { y.set(4, conform::nan); }), verdict::failed) << "NaN for a number";
  EXPECT_EQ(under([](const call&, answer& y) { y.slack[4] = conform::nan; }), verdict::failed) << "a bound that is NaN";
  EXPECT_EQ(under([](const call&, answer& y) { y.slack[4] = conform::infinity; }), verdict::failed) << "a bound without end";
  EXPECT_EQ(under([](const call& c, answer& y) { y.set(3, std::nextafter(2 * c.in[0][3], 9)); }, conform::comparison::scaled),
            verdict::passed);
}
TEST(conform_runner, outputs_beyond_the_cap_are_refused_with_their_size) {
  const auto o = judged(mistake::none, {case_of({(16 << 20) / 4 + 1}), case_of({3})});
  EXPECT_NE(o[0].reason.find("16777220 bytes"), std::string::npos) << o[0].reason;
  EXPECT_EQ(o[1].is, verdict::passed);
  EXPECT_EQ(judged(mistake::none, {case_of({(16 << 20) / 4})})[0].is, verdict::passed) << "16 MiB are allowed";
}
TEST(conform_runner, operands_that_do_not_fit_never_reach_a_device) {
  conform::spec product = *conform::find_spec("twice");
  product.name = "matmul";
  product.op = &iso::info<iso::op::matmul>;
  const auto judge = [&](conform::case_kind kind, const iso::shape& a, const iso::shape& b) {
    test_case c = case_of(a);
    c.of = &product;
    c.kind = kind;
    c.in.push_back(c.in[0]);
    c.in[1].dims = b;
    toy_device d;
    auto o = conform::batch_runner(d).run({&c, 1});
    EXPECT_TRUE(o.ok());
    EXPECT_EQ(d.loads, 0);
    return o.ok() ? (*o)[0] : outcome{};
  };
  for (const iso::shape& b : {iso::shape{2, 7}, iso::shape{5, 7}}) {  // too few rows, too many
    const outcome o = judge(conform::case_kind::forward, {2, 3}, b);
    EXPECT_EQ(o.is, verdict::failed);
    for (const char* part : {"matmul", "[2,3]", b[0] == 2 ? "[2,7]" : "[5,7]"})
      EXPECT_NE(o.reason.find(part), std::string::npos) << o.reason;
    EXPECT_NE(o.fix, "");
    EXPECT_EQ(judge(conform::case_kind::refusal, {2, 3}, b).is, verdict::passed);
  }
  const outcome accepted = judge(conform::case_kind::refusal, {2, 3}, {3, 7});
  EXPECT_EQ(accepted.is, verdict::failed);
  EXPECT_NE(accepted.reason.find("do not fit were accepted"), std::string::npos) << accepted.reason;
}
/// A device whose kernels or room are less than the cases ask for, or that cannot load plans which it should.
class limited_device final : public conform::executor {
 public:
  conform::target_facts facts() const override {
    conform::target_facts f = whole_.facts();
    if (!kernel) f.kernels = std::span(kernels).subspan(3);
    f.tensor_bytes = tensor_bytes;
    return f;
  }
  iso::device_info device() const override { return whole_.device(); }
  iso::result<std::unique_ptr<conform::loaded_batch>> load(iso::dynamic_plan plan, bool perturbed) override {
    if (perturbed && !loads_perturbed)
      return iso::fail(iso::errc::invalid_model, "no order of its steps was found", "toy", "look at the order");
    const bool odd = std::any_of(plan.operands.begin(), plan.operands.end(), [](const iso::operand& x) { return x.dims.count() == 7; });
    if (odd && sevens != iso::errc{}) return iso::fail(sevens, "seven of something", "toy");
    if (plan.steps.size() > most_steps) return iso::fail(iso::errc::invalid_model, "too many steps", "toy");
    return whole_.load(std::move(plan), perturbed);
  }
  bool kernel = true, loads_perturbed = true;
  std::int64_t tensor_bytes = 0;
  iso::errc sevens{};  // what plans with a tensor of 7 elements end with
  std::size_t most_steps = 1 << 20;

 private:
  toy_device whole_;
};
std::vector<outcome> judged_by(limited_device& d) {
  auto o = conform::batch_runner(d).run(std::vector{case_of({7}), case_of({64}, 1), case_of({300}, 2)});
  EXPECT_TRUE(o.ok());
  return o.ok() ? *o : std::vector<outcome>(3);
}
TEST(conform_runner, a_plan_that_fails_is_a_failure_and_not_unsupported) {
  // out of memory, a feature that a loader misses: whatever the code says, the backend did not declare it
  for (const iso::errc code : {iso::errc::invalid_model, iso::errc::missing_feature, iso::errc::over_budget, iso::errc::out_of_memory}) {
    limited_device d;
    d.sevens = code;
    const auto o = judged_by(d);
    EXPECT_EQ(o[0].is, verdict::failed) << name_of(code);
    EXPECT_NE(o[0].reason.find("its plan fails: seven of something"), std::string::npos) << o[0].reason;
    EXPECT_NE(o[0].fix, "");
    EXPECT_EQ(o[1].is, verdict::passed) << "the others run";
    EXPECT_EQ(o[2].is, verdict::passed);
  }
  limited_device d;
  d.loads_perturbed = false;
  for (const outcome& o : judged_by(d)) {
    EXPECT_EQ(o.is, verdict::failed);
    EXPECT_NE(o.reason.find("no order of its steps"), std::string::npos) << o.reason;
    EXPECT_EQ(o.fix, "look at the order");
  }
}
TEST(conform_runner, a_plan_that_fails_for_a_batch_alone_is_a_failure_of_the_batch) {
  limited_device d;
  d.most_steps = 4;  // two cases, and the load of the perturbed plan
  const auto o = judged_by(d);
  EXPECT_EQ(o[0].is, verdict::failed);
  EXPECT_NE(o[0].reason.find("its batch of 3 cases fails: too many steps"), std::string::npos) << o[0].reason;
}
TEST(conform_runner, what_a_backend_declares_of_itself_makes_a_case_unsupported) {
  limited_device small;
  small.tensor_bytes = 1000;
  const auto o = judged_by(small);
  EXPECT_EQ(o[0].is, verdict::passed);
  EXPECT_EQ(o[1].is, verdict::passed);
  EXPECT_EQ(o[2].is, verdict::unsupported);
  EXPECT_NE(o[2].reason.find("1000"), std::string::npos) << o[2].reason;
  limited_device bare;
  bare.kernel = false;
  for (const outcome& x : judged_by(bare)) {
    EXPECT_EQ(x.is, verdict::unsupported);
    EXPECT_NE(x.reason.find("no f32 kernel for"), std::string::npos) << x.reason;
  }
}
TEST(conform_runner, a_trace_that_ends_behind_the_op_is_no_refusal_of_the_op) {
  iso::op_info op = iso::info<twice>;
  op.gradient = [](iso::pullback& g) { g.give(0, matmul(g.dy(), g.dy())); };  // of vectors
  conform::spec of = *conform::find_spec("twice");
  of.op = &op;
  test_case c = case_of({9});
  c.of = &of;
  c.kind = conform::case_kind::gradient;
  const outcome broken = judged(mistake::none, {c})[0];
  EXPECT_EQ(broken.is, verdict::failed);
  EXPECT_FALSE(broken.refused);
  EXPECT_NE(broken.reason.find("its trace ends"), std::string::npos) << broken.reason;
  c.in[0].type = iso::dtype::i32;  // it takes floating-point numbers
  const outcome refused = judged(mistake::none, {c})[0];
  EXPECT_TRUE(refused.refused);
  EXPECT_NE(refused.reason.find("the op refuses its operands"), std::string::npos) << refused.reason;
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
  for (int loads = 0;; loads += 2) {  // two plans a batch
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
  // The end is saved as the number after all numbers: nothing runs again.
  toy_device d;
  conform::silent_progress heard;
  const auto again = conform::conformance_run(d, o, heard).run();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(conform::json_of(*again), whole);
  EXPECT_EQ(d.loads, 0);
}
/// As read_tally, from text.
bool read_text(const std::string& text, conform::tally& to) {
  const auto j = iso::io::parse_json(text, "tally");
  return j.ok() && conform::read_tally(&*j, to);
}
TEST(conform_run, every_case_is_counted_once_whatever_became_of_it) {
  struct : conform::case_visitor {
    std::int64_t n = 0;
    bool visit(test_case&&) override { return ++n > 0; }
  } all;
  conform::for_each_case(options_of().cases, all);
  for (const mistake m : {mistake::none, mistake::wrong_element, mistake::not_a_number}) {
    const conform::tally t = counted(options_of(), m);
    for (const auto& [name, o] : t.ops) EXPECT_EQ(std::accumulate(o.by_kind.begin(), o.by_kind.end(), std::int64_t(0)), o.cases()) << name;
    EXPECT_EQ(t.total().cases(), all.n);
    EXPECT_EQ(t.total().failed > 0, m != mistake::none);
    // Sums that do not add up are refused when they are read.
    conform::tally back;
    auto text = conform::json_of(t);
    EXPECT_TRUE(read_text(text, back));
    EXPECT_EQ(conform::json_of(back), text);
    text.replace(text.find("\"passed\":"), 9, "\"passed\":1");
    EXPECT_FALSE(read_text(text, back)) << text;
  }
}
/// Keeps what it visits.
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
  // Of an op that is not element-wise: each finite one by itself, amid the numbers of a case.
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
  // All but the last of them are a sound stream.
  conform::case_stream before;
  for (std::size_t k = 0; k < 2; ++k) before.add(seen.all[k]);
  EXPECT_TRUE(before.check(ops).ok());
  // Repetitions that no int holds are as many as one holds.
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
  // Each time as soon as so many cases have run: two plans a case.
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
  EXPECT_EQ(told, std::vector<std::uint64_t>{n}) << "without an interval, at the end alone";
  EXPECT_EQ(conform::line_of({7, 20, 1, 2}), "7 of 20 cases, 1 failed, 2 unsupported");
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

}  // namespace runner_test
