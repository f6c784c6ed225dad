/// Choices among variants: what is remembered at each level, and how variants are timed and compared, on a device that is made up.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <isotope/backend/queue/tuner.hpp>

#include "../io/scratch_folder.hpp"

namespace isotope {
namespace tuner_test {

TEST(variant_cache, an_estimate_is_kept_for_later_runs_but_does_not_pass_for_a_measurement) {
  const scratch_folder f;
  {
    variant_cache c(tuning::cached, f.at("choices"), "device");
    EXPECT_EQ(c.find("a"), "");
    c.put_estimated("a", "tile 1");
    c.put_measured("b", "tile 2");
    EXPECT_EQ(c.find("a"), "tile 1");
    c.save();
  }
  const variant_cache cached(tuning::cached, f.at("choices"), "device"), measure(tuning::measure, f.at("choices"), "device"),
      off(tuning::off, f.at("choices"), "device");
  EXPECT_EQ(cached.find("a"), "tile 1");
  EXPECT_EQ(cached.find("b"), "tile 2");
  EXPECT_EQ(measure.find("a"), "");
  EXPECT_EQ(measure.find("b"), "tile 2");
  EXPECT_EQ(off.find("b"), "");
}
TEST(variant_cache, a_shipped_table_serves_its_device_where_the_file_has_no_choice_and_nothing_is_to_be_measured) {
  const std::array<shipped_choices, 2> all{{{"one", "a\ttile 1\nb\ttile 2\nbroken"}, {"other", "a\ttile 9\n"}}};
  variant_cache c(tuning::cached, "", "key", "one", all);
  EXPECT_EQ(c.find("a"), "tile 1");
  EXPECT_EQ(c.find("broken"), "");
  c.put_estimated("b", "tile 7");
  EXPECT_EQ(c.find("b"), "tile 7");
  EXPECT_EQ(variant_cache(tuning::cached, "", "key", "none", all).find("a"), "");
  EXPECT_EQ(variant_cache(tuning::measure, "", "key", "one", all).find("a"), "");
}
TEST(variant_cache, the_fastest_wins_and_of_those_within_one_percent_the_predicted_one) {
  const auto best = [](std::vector<timed_variant> all) { return fastest_of(all); };
  EXPECT_EQ(best({{"a", 1, 1.2}, {"b", 1, 1.0}, {"c", 1, 1.1}}), 1);
  EXPECT_EQ(best({{"a", 1, 1.009}, {"b", 1, 1.0}}), 0);
  EXPECT_EQ(best({{"a", 1, 1.011}, {"b", 1, 1.0}}), 1);
  EXPECT_EQ(best({{"a", 3, 1.0}, {"b", 1, 1.009}, {"c", 2, 1.005}, {"d", 0.5, 1.02}}), 1);
  EXPECT_EQ(best({{"a", 1, 0.5, false}, {"b", 1, 1.0}, {"c", 1, 0}}), 1);
  EXPECT_EQ(best({{"a", 1, 0.5, false}}), -1);
}
TEST(variant_cache, results_agree_if_they_differ_by_rounding_alone) {
  std::vector<float> a(200), b, c;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(float(i)) * 30;
  b = c = a;
  for (float& x : b) x *= 1 + 0x1p-12f;
  c[130] += 20;
  const auto bytes = [](const std::vector<float>& x) { return std::as_bytes(std::span(x)); };
  EXPECT_TRUE(results_agree(dtype::f32, bytes(a), bytes(a)));
  EXPECT_TRUE(results_agree(dtype::f32, bytes(a), bytes(b)));
  EXPECT_FALSE(results_agree(dtype::f32, bytes(a), bytes(c)));
  EXPECT_FALSE(results_agree(dtype::i32, bytes(a), bytes(b))) << "whole numbers are equal or they are not";
  c = a;
  c[7] = std::nanf("");
  EXPECT_FALSE(results_agree(dtype::f32, bytes(a), bytes(c)));
}

/// A device whose one step writes 1,000 floats, by four variants with times of their own. "wrong" writes other numbers than the rest.
struct made_up {
  struct dispatch {
    std::string choice, variant;
    std::vector<considered_variant> considered;
    std::int32_t step = 0;
    std::vector<byte_range> reads, writes;
    std::uint64_t x = 0, y = 0;
  };
  struct memory {
    std::vector<std::byte> bytes;
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes.data()); }
  };
  struct run {
    std::vector<dispatch> all;
    int times = 1;
    bool alone = false;
    double factor = 1;  // of its time
  };
  struct view {
    std::uint64_t at;
    std::int64_t bytes;
    dtype type = dtype::f32;
  };
  static constexpr std::int64_t count = 1000;
  std::vector<considered_variant> variants{{"a", 1.0}, {"b", 1.1}, {"wrong", 1.2}, {"slow", 3.5}, {"narrow", 0, "it does not fit"}};
  std::map<std::string, double> seconds_of{{"a", 2e-3}, {"b", 1e-3}, {"wrong", 1e-5}, {"slow", 1e-6}}, seconds_alone;
  std::string slow_at_first;  // the first run of this variant takes four times as long
  std::set<std::string> timed;
  std::map<std::string, int> runs;
  std::int64_t most_bytes = 1 << 20;
  std::vector<float> tensors = std::vector<float>(2 * count + 8, 0.25f);  // of the program: x, y

  std::vector<dispatch> record(const step_recording& how) {
    std::array<view, 2> views{{{reinterpret_cast<std::uint64_t>(tensors.data()), 4 * count},
                               {reinterpret_cast<std::uint64_t>(tensors.data() + count + 8), 4 * count}}};
    std::uint64_t scratch = 0;
    how.move(std::span<view>(views), 1, scratch, 0);
    dispatch d;
    d.choice = "step", d.considered = variants, d.x = views[0].at, d.y = views[1].at;
    const std::string known = how.known == nullptr ? "" : how.known->find("step");
    for (auto& v : d.considered)
      if (v.name == known) d.variant = known;
    if (d.variant.empty()) d.variant = "a";
    for (auto& v : d.considered) v.chosen = v.name == d.variant;
    return {d};
  }
  result<void> compile(const std::vector<dispatch>&, std::span<const dispatch>) { return {}; }
  result<void> ready(const std::vector<dispatch>&) { return {}; }
  result<memory> allocate(std::int64_t bytes) const {
    if (bytes > most_bytes) return fail(errc::out_of_memory, "no memory", "made up", "less");
    return memory{std::vector<std::byte>(std::size_t(bytes))};
  }
  result<void> clear(memory& m, std::int64_t at, std::int64_t bytes) {
    std::memset(m.bytes.data() + at, 0, std::size_t(bytes));
    return {};
  }
  result<void> upload(memory& m, std::int64_t at, std::span<const std::byte> from) {
    std::memcpy(m.bytes.data() + at, from.data(), from.size());
    return {};
  }
  result<void> download(const memory& m, std::span<const memory_piece> all) {
    for (const auto& p : all) std::memcpy(p.to.data(), m.bytes.data() + p.at, p.to.size());
    return {};
  }
  result<run> prepare(const std::vector<dispatch>& all, int times) { return run{all, times}; }
  result<double> seconds(const run& r) {
    for (const dispatch& d : r.all) {
      const auto* x = reinterpret_cast<const float*>(d.x);
      auto* y = reinterpret_cast<float*>(d.y);
      for (std::int64_t i = 0; i < count; ++i) y[i] = 2 * x[i] + (d.variant == "wrong" && i == 700 ? 3.0f : 0.0f);
      timed.insert(d.variant);
    }
    const std::string& variant = r.all.front().variant;
    return r.factor * (++runs[variant] == 1 && variant == slow_at_first ? 4 : 1) * (r.alone ? seconds_alone : seconds_of).at(variant);
  }
};
/// On this device a kernel that follows itself starts sooner than alone.
struct late_starter : made_up {
  result<run> prepare_alone(const std::vector<dispatch>& all, int) { return run{all, 1, true}; }
};
/// On this one each recording of the same dispatches takes a time of its own, up to 1 % away, and of "a" the first is the fastest, of "b" the last.
struct by_recordings : late_starter {
  static constexpr int recordings = 16;
  std::map<std::string, int> prepared;
  result<run> prepare_alone(const std::vector<dispatch>& all, int) {
    const std::string& name = all.front().variant;
    const int k = prepared[name]++, place = name == "a" ? k : recordings - 1 - k;
    return run{all, 1, true, 1 + 0.0015 * (place - 7.5)};
  }
};
/// And this one copies between addresses.
struct copying : late_starter {
  int copies = 0;
  result<void> copy(std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
    ++copies;
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), std::size_t(bytes));
    return {};
  }
};
/// y = f(x), where y lasts no longer than a run, or is what the plan gives out.
struct one_step {
  std::vector<step> steps = std::vector<step>(1);
  std::vector<operand> operands = std::vector<operand>(2);
  explicit one_step(value_kind y = value_kind::output) {
    steps[0].inputs = steps[0].outputs = 1;
    operands[0].region = value_kind::param, operands[1].region = y;
  }
  plan_view view() const {
    plan_view p;
    p.steps = steps, p.operands = operands;
    return p;
  }
};

TEST(tuner, times_what_may_be_fastest_and_keeps_the_fastest_that_agrees) {
  made_up d;
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b");
  EXPECT_EQ(d.timed, (std::set<std::string>{"a", "b", "wrong"})) << "the slow one is predicted to take more than three times as long";
  ASSERT_EQ(c.messages().size(), 1u);
  EXPECT_NE(c.messages()[0].find("'wrong' is not used"), std::string::npos) << c.messages()[0];
  for (const float x : d.tensors) ASSERT_EQ(x, 0.25f) << "timing changes no tensor that lasts";
  d.timed.clear();
  EXPECT_FALSE(tuner(p.view(), c, d).settle(d.record({&c})));
  EXPECT_TRUE(d.timed.empty()) << "once";
}
TEST(tuner, compares_with_the_variant_of_the_least_predicted_time_wherever_it_stands) {
  made_up d;
  d.variants = {{"b", 1.1}, {"wrong", 1.2}, {"a", 1.0}};
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b");
  ASSERT_EQ(c.messages().size(), 1u);
  EXPECT_NE(c.messages()[0].find("'wrong' is not used: its results are not those of 'a'"), std::string::npos) << c.messages()[0];
  EXPECT_EQ(c.spent().choices, 1);
  EXPECT_EQ(c.spent().variants, 3);
}
TEST(tuner, times_no_longer_than_it_takes_to_tell_variants_apart) {
  const auto runs_of = [](double seconds_of_a, double seconds_of_b) {
    made_up d;
    d.variants = {{"a", 1.0}, {"b", 1.1}};
    d.seconds_of = {{"a", seconds_of_a}, {"b", seconds_of_b}};
    const one_step p;
    variant_cache c(tuning::measure, "", "device");
    EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
    EXPECT_EQ(c.find("step"), seconds_of_a <= 1.01 * seconds_of_b ? "a" : "b");
    return std::pair(d.runs["a"], d.runs["b"]);
  };
  // The first run of each compares results. Then a round is one of each.
  EXPECT_EQ(runs_of(1e-3, 1.6e-3), std::pair(2, 1)) << "far slower in the first run";
  EXPECT_EQ(runs_of(1.3e-3, 1e-3), std::pair(4, 4)) << "a fifth slower";
  EXPECT_EQ(runs_of(1.15e-3, 1e-3), std::pair(4, 4)) << "a tenth slower";
  EXPECT_EQ(runs_of(1.08e-3, 1e-3), std::pair(6, 6)) << "a twentieth slower";
  EXPECT_EQ(runs_of(1.02e-3, 1e-3), std::pair(10, 10)) << "nine rounds show which is faster";
  EXPECT_EQ(runs_of(1.005e-3, 1e-3), std::pair(8, 8)) << "a tie";
  EXPECT_EQ(runs_of(1e-4, 1.6e-4), std::pair(2, 3)) << "a short one that is far slower runs twice more";
}
TEST(tuner, a_short_kernel_does_not_leave_for_one_slow_run) {
  made_up d;
  d.variants = {{"a", 1.0}, {"b", 1.1}};
  d.seconds_of = {{"a", 1e-4}, {"b", 5e-5}};
  d.slow_at_first = "b";
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b");
}
TEST(tuner, of_short_kernels_that_are_close_the_fastest_alone_wins) {
  const auto chosen = [](double a, double b, double b_alone = 6e-5) {
    late_starter d;
    d.variants = {{"a", 1.0}, {"b", 1.1}};
    d.seconds_of = {{"a", a}, {"b", b}}, d.seconds_alone = {{"a", 8e-5}, {"b", b_alone}};
    const one_step p;
    variant_cache c(tuning::measure, "", "device");
    EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
    return c.find("step");
  };
  EXPECT_EQ(chosen(5e-5, 5.4e-5), "b");
  EXPECT_EQ(chosen(5e-5, 5.4e-5, 7.99e-5), "a") << "a tie goes to the predicted one";
  EXPECT_EQ(chosen(5e-5, 5.4e-5, 7.95e-5), "b");
  EXPECT_EQ(chosen(5e-5, 6.4e-5), "a") << "they are not close";
  EXPECT_EQ(chosen(2e-4, 2.3e-4), "a") << "they are not close";
  EXPECT_EQ(chosen(6e-4, 6.4e-4), "a") << "they are not short";
}
TEST(tuner, alone_a_step_reads_in_place_and_writes_in_place_only_what_does_not_last) {
  for (const auto where : {value_kind::temp, value_kind::output, value_kind::grad}) {
    late_starter d;
    d.variants = {{"a", 1.0}, {"b", 1.1}};
    d.seconds_of = d.seconds_alone = {{"a", 7e-5}, {"b", 6e-5}};
    const one_step p(where);
    variant_cache c(tuning::measure, "", "device");
    EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
    EXPECT_EQ(c.find("step"), "b");
    for (std::int64_t i = 0; i < made_up::count; ++i) ASSERT_EQ(d.tensors[std::size_t(i)], 0.25f) << "what is read does not change";
    EXPECT_EQ(d.tensors[made_up::count + 8], where == value_kind::temp ? 0.5f : 0.25f) << "y = 2 x, of the program's x";
  }
}
TEST(tuner, of_several_recordings_of_a_variant_the_medium_one_counts) {
  by_recordings d;
  d.variants = {{"a", 1.0}, {"b", 1.1}};
  d.seconds_of = {{"a", 5e-5}, {"b", 5e-5}}, d.seconds_alone = {{"a", 6e-5}, {"b", 5.9e-5}};
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b") << "14 of 16 recordings are faster, but not the first";
  EXPECT_EQ(d.prepared["a"], 16);
  by_recordings longer;
  longer.variants = d.variants;
  longer.seconds_of = longer.seconds_alone = {{"a", 2e-4}, {"b", 2e-4}};
  variant_cache other(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), other, longer).settle(longer.record({})));
  EXPECT_EQ(longer.prepared["a"], 1) << "it does not matter to long ones";
}
TEST(tuner, numbers_are_lent_to_what_is_read_in_place_and_taken_back) {
  copying d;
  d.variants = {{"a", 1e-4}, {"b", 1.1e-4}};
  d.seconds_of = d.seconds_alone = {{"a", 7e-5}, {"b", 6e-5}};
  const one_step p(value_kind::temp);
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b");
  EXPECT_EQ(d.copies, 3);
  for (std::int64_t i = 0; i < made_up::count; ++i) {
    ASSERT_EQ(d.tensors[std::size_t(i)], 0.25f) << "what is read does not change";
    ASSERT_GE(std::abs(d.tensors[std::size_t(made_up::count + 8 + i)]), 1.0f) << "y = 2 x, of numbers for timing";
  }
  copying predicted_to_be_long;
  predicted_to_be_long.variants = {{"a", 1.0}, {"b", 1.1}};
  predicted_to_be_long.seconds_of = predicted_to_be_long.seconds_alone = d.seconds_alone;
  variant_cache other(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), other, predicted_to_be_long).settle(predicted_to_be_long.record({})));
  EXPECT_EQ(predicted_to_be_long.copies, 0) << "there is no memory to keep what is there";
}
TEST(tuner, without_measuring_the_estimate_is_kept_and_nothing_runs) {
  made_up d;
  const one_step p;
  variant_cache c(tuning::cached, "", "device");
  EXPECT_FALSE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "a");
  EXPECT_TRUE(d.timed.empty());
  c.put_measured("step", "a variant of an earlier build");
  EXPECT_FALSE(tuner(p.view(), c, d).settle(d.record({&c})));
  EXPECT_EQ(c.find("step"), "a") << "a name that no variant has is a missing choice";
}
/// The same device beside other programs, which come while three of four runs of "b" go on.
struct beside_others : made_up {
  static constexpr bool shared = true;
  result<double> seconds(const run& r) {
    const double alone = *made_up::seconds(r);
    return r.all.front().variant == "b" && runs["b"] % 4 != 0 ? 2.5 * alone : alone;
  }
};
TEST(tuner, beside_other_programs_the_least_of_many_runs_counts) {
  beside_others d;
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "b");
  made_up quiet;
  quiet.seconds_of["b"] = 2.5e-3;  // what most of those runs take
  variant_cache of_quiet(tuning::measure, "", "device");
  EXPECT_TRUE(tuner(p.view(), of_quiet, quiet).settle(quiet.record({})));
  EXPECT_EQ(of_quiet.find("step"), "a");
}
TEST(tuner, without_memory_the_estimate_stays_and_one_line_says_so) {
  made_up d;
  d.most_bytes = 1000;
  const one_step p;
  variant_cache c(tuning::measure, "", "device");
  EXPECT_FALSE(tuner(p.view(), c, d).settle(d.record({})));
  EXPECT_EQ(c.find("step"), "");
  ASSERT_EQ(c.messages().size(), 1u);
  EXPECT_NE(c.messages()[0].find("were not timed"), std::string::npos) << c.messages()[0];
}
TEST(step_choices, only_a_step_with_a_signature_is_remembered) {
  struct always_b final : known_choices {
    std::string find(const std::string&) const override { return "b"; }
  } all;
  step_choices c;
  c.know(&all);
  c.begin_step();
  EXPECT_EQ(c.next([] { return std::string(); })->remembered, "");
  EXPECT_EQ(c.signature(), "");
  c.begin_step();
  EXPECT_EQ(c.next([] { return std::string("step"); })->remembered, "b");
  EXPECT_EQ(c.signature(), "step");
}
}  // namespace tuner_test
}  // namespace isotope
