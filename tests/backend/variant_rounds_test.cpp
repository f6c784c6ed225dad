/// How variants run by turns until their order is known, on a device that is made up, and where their operands lie meanwhile.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <isotope/backend/queue/operand_places.hpp>
#include <isotope/backend/queue/variant_rounds.hpp>

namespace isotope {
namespace variant_rounds_test {

/// Times of a device whose runs take longer by up to `noise` of them, and in one of `bursts` rounds by three times as long.
struct noisy {
  struct run {
    std::size_t variant = 0;
  };
  std::vector<double> usual;
  double noise = 0;
  int bursts = 1 << 30, calls = 0;
  std::uint32_t x = 1;
  result<double> seconds(const run& r) {
    x = x * 1664525u + 1013904223u;
    const bool burst = (calls++ / int(usual.size())) % bursts == bursts - 1;
    return usual[r.variant] * (1 + noise * double(x >> 8) / double(1 << 24)) * (burst ? 3 : 1);
  }
  /// Runs them by turns. Returns the fastest and how many rounds it had.
  std::pair<std::size_t, int> fastest(const turns& how) {
    std::vector<timed_variant> all(usual.size());
    std::vector<std::vector<run>> several(usual.size());
    for (std::size_t k = 0; k < several.size(); ++k) several[k].push_back({k});
    EXPECT_TRUE(by_turns(*this, all, several, how).ok());
    std::size_t best = 0;
    for (std::size_t k = 1; k < all.size(); ++k)
      if (all[k].seconds > 0 && (all[best].seconds <= 0 || all[k].seconds < all[best].seconds)) best = k;
    return {best, calls / int(usual.size())};
  }
};
constexpr turns patient{.tie = 1.003, .most = 60, .most_seconds = 1e9, .much = [](int, double) { return 1.5; }};

TEST(variant_rounds, low_times_count_and_one_disturbed_round_in_three_does_not) {
  variant_rounds r(2, 0.25);
  for (const double t : {9.0, 1.0, 1.2, 9.0, 1.1, 1.3, 9.0, 1.4, 1.5}) r.add(0, t), r.add(1, 1.02 * t);
  EXPECT_EQ(r.seconds(0), 1.2);
  EXPECT_TRUE(r.settled(0, 1, 1.003)) << "the first one was faster in all nine rounds";
  EXPECT_TRUE(r.settled(1, 0, 1.003));
  for (int k = 0; k < 3; ++k) r.add(0, 1.2), r.add(1, 1.1);
  EXPECT_FALSE(r.settled(0, 1, 1.003)) << "nine of twelve";
  EXPECT_TRUE(r.settled(0, 1, 1.1)) << "a tie";
  noisy bursts{.usual = {1.05, 1.0}, .bursts = 3};
  EXPECT_EQ(bursts.fastest(patient).first, 1u);
}
TEST(variant_rounds, go_on_until_the_order_is_known) {
  noisy quiet{.usual = {1.02, 1.0}}, loud{.usual = {1.02, 1.0}, .noise = 0.05}, equal{.usual = {1.0, 1.0}};
  EXPECT_EQ(quiet.fastest(patient), std::pair(std::size_t(1), 9));
  EXPECT_EQ(equal.fastest(patient).second, 7) << "a tie is known at once";
  const auto [best, rounds] = loud.fastest(patient);
  EXPECT_EQ(best, 1u);
  EXPECT_GT(rounds, 9);
  EXPECT_LT(rounds, 60);
  int wrong = 0, all = 0;  // of two that are 3 % apart in noise of 5 %
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    noisy d{.usual = {1.03, 1.0}, .noise = 0.05, .x = seed * 7919};
    const auto r = d.fastest(patient);
    wrong += r.first != 1, all += r.second;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(all, 200 * 20);
}
TEST(variant_rounds, end_after_a_time_where_the_order_stays_unknown) {
  noisy d{.usual = {1.004, 1.0}, .noise = 0.5};
  turns how = patient;
  how.most_seconds = 0;
  EXPECT_EQ(d.fastest(how).second, 7);
  noisy longer{.usual = {1.004, 1.0}, .noise = 0.5};
  EXPECT_LE(longer.fastest(patient).second, 60);
}
TEST(operand_places, stay_where_they_are_only_read_or_may_be_written) {
  operand_places p;
  p.add({1000, 100}, operand_places::area::noise);
  p.add({9000, 50}, operand_places::area::zeros);
  p.add({20000, 100}, operand_places::area::written);
  p.add({30000, 100}, operand_places::area::written);
  p.place(1 << 20, 2 << 20, 3 << 20);
  p.stay([](const byte_range& r) { return r.first == 20000; });
  EXPECT_EQ(p.at(1099), 1099u);
  EXPECT_EQ(p.at(20000), 20000u);
  EXPECT_NE(p.at(9000), 9000u);
  EXPECT_NE(p.at(30000), 30000u);
}
TEST(operand_places, keep_distances_of_bytes_that_overlap_and_the_remainder_of_addresses) {
  operand_places p;
  p.add({1000, 100}, operand_places::area::noise);
  p.add({5000, 100}, operand_places::area::noise);
  p.add({5050, 300}, operand_places::area::written);
  p.add({9000, 50}, operand_places::area::zeros);
  p.place(1 << 20, 2 << 20, 3 << 20);
  for (const std::uint64_t at : {1000u, 1099u, 5000u, 5349u, 9000u}) EXPECT_EQ(p.at(at) % 4096, at % 4096) << at;
  EXPECT_EQ(p.at(5349) - p.at(5000), 349u);
  EXPECT_EQ(p.at(1000) >> 20, 1u);
  EXPECT_EQ(p.at(9000) >> 20, 2u);
  EXPECT_EQ(p.at(5000) >> 20, 3u) << "what is written, and what overlaps it";
  EXPECT_EQ(p.at(400), 400u) << "no byte of the step";
  EXPECT_LE(p.at(1099) - (1 << 20), std::uint64_t(p.bytes_of(operand_places::area::noise)));
}
TEST(operand_places, keep_places_in_larger_pages) {
  constexpr std::uint64_t page = 2 << 20;
  operand_places p(page);
  p.add({5000, 3 << 20}, operand_places::area::noise);
  p.add({(3 << 20) + 64, 5 << 20}, operand_places::area::noise);
  p.place(page, 10 * page, 11 * page);
  for (const std::uint64_t at : {5000u, (3u << 20) + 64}) EXPECT_EQ(p.at(at) % page, at % page) << at;
  EXPECT_GE(p.at((3 << 20) + 64), p.at((3 << 20) - 1) + 1) << "behind the first";
  EXPECT_LE(p.at((5 << 20) - 1) + 1 - page, std::uint64_t(p.bytes_of(operand_places::area::noise)));
}

}  // namespace variant_rounds_test
}  // namespace isotope
