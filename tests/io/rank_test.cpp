#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/calibrate/rank.hpp>
#include <isotope/calibrate/rank_file.hpp>
#include <isotope/io/file.hpp>

#include "io/scratch_folder.hpp"

namespace rank_test {
namespace iso = isotope;
using isotope::scratch_folder;

/// A device that there is not: it was measured, and the plan takes 2 of its 4 MiB.
iso::rank_candidate stub(const std::string& device, double seconds) {
  iso::rank_candidate c{.backend = "stub", .device = device, .format = "f32"};
  c.estimate.parts = {seconds / 2, seconds / 4, seconds / 8, seconds / 8};
  c.estimate.flops = 3, c.estimate.bytes = 5;
  c.planned_bytes = 2 << 20, c.device_bytes = 4 << 20, c.greatest_batch = 8;
  return c;
}
std::vector<std::string> devices_of(const iso::ranking& r) {
  std::vector<std::string> names;
  for (const iso::rank_candidate& c : r.order) names.push_back(c.device);
  return names;
}
const iso::ranked_work work{.model = "m", .batch = 4, .length = 16, .machine = "a processor", .version = "1.2.3"};

TEST(rank, orders_devices_by_predicted_time_however_they_are_given) {
  std::vector<iso::rank_candidate> all = {stub("a", 4e-3), stub("b", 1e-3), stub("c", 2e-3), stub("d", 1e-3)};
  all[3].planned_bytes -= 1;  // of equal times, the plan that takes less comes first
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.device < y.device; });
  do {
    const iso::ranking r = iso::rank_by_time(all);
    ASSERT_EQ(devices_of(r), (std::vector<std::string>{"d", "b", "c", "a"}));
    ASSERT_TRUE(r.refusals.empty());
  } while (std::next_permutation(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.device < y.device; }));
  EXPECT_TRUE(iso::rank_by_time({}).order.empty());
}

TEST(rank, refuses_what_was_not_measured) {
  auto none = stub("fast", 1e-9), usual = stub("usual", 1e-9);
  none.estimate.from = iso::provenance::none;
  usual.estimate.from = iso::provenance::architecture_default;
  const iso::ranking r = iso::rank_by_time({none, stub("slow", 1), usual});
  EXPECT_EQ(devices_of(r), std::vector<std::string>{"slow"});
  ASSERT_EQ(r.refusals.size(), 2u);
  EXPECT_EQ(r.refusals[0].of.device, "fast");
  EXPECT_EQ(r.refusals[0].reason, "the device was not measured");
  EXPECT_EQ(r.refusals[1].of.device, "usual");
  EXPECT_EQ(r.refusals[1].reason, "the prediction rests on figures that were not measured there: architecture default");
}

TEST(rank, says_in_one_line_why_a_device_has_no_place) {
  const auto reason_with = [](const auto& change) {
    auto c = stub("x", 1);
    change(c);
    return iso::refusal_of(c);
  };
  EXPECT_EQ(reason_with([](auto&) {}), "");
  EXPECT_EQ(reason_with([](auto& c) { c.problem = "no driver"; }), "no driver");
  EXPECT_EQ(reason_with([](auto& c) { c.planned_bytes = 6 << 20; }), "the plan takes 6 MiB of 4 MiB: batch 8 fits");
  EXPECT_EQ(reason_with([](auto& c) { c.planned_bytes = 6 << 20, c.greatest_batch = 0; }),
            "the plan takes 6 MiB of 4 MiB: a batch of 1 does not fit either");
  EXPECT_EQ(reason_with([](auto& c) { c.planned_bytes = c.device_bytes; }), "");
  EXPECT_EQ(reason_with([](auto& c) { c.device_bytes = 0; }), "");  // unknown
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_NE(reason_with([&](auto& c) { c.estimate.parts = {seconds}; }), "") << seconds;
}

TEST(rank, gives_the_greatest_power_of_two_that_fits) {
  const auto of = [](std::int64_t room) { return iso::greatest_batch(room, [](std::int64_t batch) { return 100 + 10 * batch; }); };
  EXPECT_EQ(of(109), 0);
  EXPECT_EQ(of(110), 1);
  EXPECT_EQ(of(179), 4);
  EXPECT_EQ(of(180), 8);
  EXPECT_EQ(iso::greatest_batch(1000, [](std::int64_t batch) { return batch > 4 ? -1 : batch; }), 4);  // greater ones have no plan
  EXPECT_EQ(iso::greatest_batch(1000, [](std::int64_t) { return 0; }), 1 << 20);                       // it ends
}

TEST(rank_file, keeps_the_candidates_of_every_backend) {
  const scratch_folder folder;
  auto odd = stub("a \"b\"\n", 0.1);
  odd.problem = "no driver", odd.estimate.from = iso::provenance::architecture_default;
  const std::string path = folder.at(iso::rank_file_name("stub", "f32"));
  ASSERT_TRUE(iso::write_candidates(path, work, {stub("x", 1.0 / 3), odd}).ok());
  const auto got = iso::read_candidates(path, work);
  EXPECT_EQ(got.ignored, "");
  EXPECT_EQ(got.all, (std::vector<iso::rank_candidate>{stub("x", 1.0 / 3), odd}));
  EXPECT_EQ(iso::rank_folder("f", work), "f/isotope/rank/m-4x16");
  EXPECT_NE(iso::read_candidates(folder.at("nowhere"), work).ignored, "");
}

TEST(rank_file, of_other_work_another_machine_or_version_is_ignored) {
  const std::string text = iso::text_of(work, {stub("x", 1)});
  const auto ignored = [&](auto change) {
    iso::ranked_work other = work;
    change(other);
    const auto got = iso::parse_candidates(text, "p", other);
    EXPECT_TRUE(got.all.empty());
    return got.ignored;
  };
  EXPECT_EQ(iso::parse_candidates(text, "p", work).all.size(), 1u);
  EXPECT_EQ(ignored([](auto& w) { w.model = "n"; }), "p is ignored: it is of another size");
  EXPECT_EQ(ignored([](auto& w) { w.batch = 8; }), "p is ignored: it is of another size");
  EXPECT_EQ(ignored([](auto& w) { w.length = 8; }), "p is ignored: it is of another size");
  EXPECT_EQ(ignored([](auto& w) { w.machine = "n"; }), "p is ignored: it was written on another machine");
  EXPECT_EQ(ignored([](auto& w) { w.version = "n"; }),
            "p is ignored: another version of isotope wrote it: rank again with a build of this one");
}

TEST(rank_file, that_was_cut_anywhere_or_has_a_wrong_member_is_ignored) {
  std::string whole = iso::text_of(work, {stub("x", 1), stub("y", 2)});
  whole.pop_back();  // the end of the line, without which it is whole
  ASSERT_EQ(iso::parse_candidates(whole, "p", work).all.size(), 2u);
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    const auto got = iso::parse_candidates(std::string_view(whole).substr(0, n), "p", work);
    EXPECT_TRUE(got.all.empty() && !got.ignored.empty()) << n;
  }
  for (const auto& [good, bad] : {std::pair<const char*, const char*>{"\"measured\"", "\"guessed\""},
                                  {"\"flops\": 3", "\"flops\": -3"},
                                  {"\"flops\": 3", "\"flops\": 3.5"},
                                  {"\"flops\": 3", "\"flops\": 30000000000000000000"},
                                  {"\"flops\"", "\"flips\""},
                                  {"\"functions seconds\": 0.125", "\"functions seconds\": 1e999"},
                                  {"\"functions seconds\": 0.125", "\"functions seconds\": null"},
                                  {"\"isotope_rank\": 1", "\"isotope_rank\": 2"}}) {
    std::string text = whole;
    ASSERT_NE(text.find(good), text.npos) << good;
    text.replace(text.find(good), std::string_view(good).size(), bad);
    const auto got = iso::parse_candidates(text, "p", work);
    EXPECT_TRUE(got.all.empty() && !got.ignored.empty()) << bad;
  }
}
}  // namespace rank_test
