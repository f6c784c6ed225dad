#include <gtest/gtest.h>

#include <isotope/backend/queue/hazards.hpp>
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/core/philox.hpp>

namespace isotope::vulkan {
namespace barriers_test {

dispatch touching(std::vector<range> reads, std::vector<range> writes) {
  dispatch d;
  d.reads = std::move(reads);
  d.writes = std::move(writes);
  return d;
}
std::vector<dispatch> random_dispatches(std::uint64_t seed, std::size_t n) {
  std::vector<dispatch> all;
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = philox(seed, i, 0, 0), v = philox(seed, i, 1, 0);
    const auto some = [](std::uint32_t x) { return range(256 * (x % 12), 256 * (1 + (x >> 8) % 3)); };
    all.push_back(touching({some(w[0]), some(w[1])}, {some(v[0])}));
    if (w[2] % 3 == 0) all.back().writes.push_back(some(v[1]));
  }
  return all;
}

TEST(barriers, stand_where_a_read_follows_a_write_and_nowhere_else) {
  const range a(0, 256), b(256, 256), c(512, 256);
  const std::vector<dispatch> all = {touching({}, {a}), touching({}, {b}), touching({a, b}, {c}), touching({c}, {})};
  EXPECT_EQ(plan_barriers(all), (std::vector<std::uint8_t>{0, 0, 1, 1}));
}
TEST(barriers, stand_where_a_write_follows_a_read_or_a_write) {
  const range a(0, 256), b(256, 256);
  EXPECT_EQ(plan_barriers(std::vector{touching({a}, {b}), touching({}, {a})}), (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(plan_barriers(std::vector{touching({}, {a}), touching({}, {a})}), (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(plan_barriers(std::vector{touching({a}, {b}), touching({a}, {range(512, 4)})}), (std::vector<std::uint8_t>{0, 0}));
}
TEST(barriers, ranges_that_only_touch_at_their_ends_need_none) {
  EXPECT_EQ(plan_barriers(std::vector{touching({}, {range(0, 100)}), touching({range(100, 4)}, {})}), (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(plan_barriers(std::vector{touching({}, {range(0, 100)}), touching({range(99, 4)}, {})}), (std::vector<std::uint8_t>{0, 1}));
}
TEST(hazards, none_is_left_by_the_planned_barriers_and_each_dropped_barrier_is_found) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto all = random_dispatches(seed, 40);
    const auto before = plan_barriers(all);
    EXPECT_TRUE(find_hazards(all, before).empty()) << seed;
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (before[k] == 0) continue;
      auto fewer = before;
      fewer[k] = 0;
      EXPECT_FALSE(find_hazards(all, fewer).empty()) << "seed " << seed << ", barrier before " << k;
    }
  }
}
TEST(hazards, a_range_that_a_kernel_does_not_declare_is_not_checked) {
  // The checker relies on the declared ranges, so session_test.cpp tests these.
  auto all = std::vector{touching({}, {range(0, 256)}), touching({range(0, 256)}, {range(256, 256)})};
  all[1].reads.clear();
  EXPECT_EQ(plan_barriers(all)[1], 0);
}

}  // namespace barriers_test
}  // namespace isotope::vulkan
