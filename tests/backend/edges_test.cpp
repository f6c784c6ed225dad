#include <gtest/gtest.h>

#include <isotope/backend/queue/hazards.hpp>
#include <isotope/core/philox.hpp>

namespace isotope {
namespace edges_test {

struct touching {
  std::vector<byte_range> reads, writes;
};
std::vector<touching> random_dispatches(std::uint64_t seed, std::size_t n) {
  std::vector<touching> all;
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = philox(seed, i, 0, 0), v = philox(seed, i, 1, 0);
    const auto some = [](std::uint32_t x) { return byte_range(256 * (x % 24), 256 * (1 + (x >> 8) % 2)); };
    all.push_back({{some(w[0]), some(w[1])}, {some(v[0])}});
    if (w[2] % 3 == 0) all.back().writes.push_back(some(v[1]));
  }
  return all;
}
using lists = dispatch_edges;

TEST(edges, lead_from_a_write_to_a_read_from_a_read_to_a_write_and_from_a_write_to_a_write) {
  const byte_range a(0, 256), b(256, 256);
  EXPECT_EQ(plan_edges(std::vector<touching>{{{}, {a}}, {{a}, {b}}}), (lists{{}, {0}}));
  EXPECT_EQ(plan_edges(std::vector<touching>{{{a}, {b}}, {{}, {a}}}), (lists{{}, {0}}));
  EXPECT_EQ(plan_edges(std::vector<touching>{{{}, {a}}, {{}, {a}}}), (lists{{}, {0}}));
  EXPECT_EQ(plan_edges(std::vector<touching>{{{a}, {}}, {{a}, {b}}}), (lists{{}, {}}));
}
TEST(edges, independent_dispatches_have_none_and_what_follows_from_others_is_left_out) {
  const byte_range a(0, 256), b(256, 256), c(512, 256), d(768, 256);
  const std::vector<touching> all = {{{}, {a}}, {{}, {b}}, {{a}, {c}}, {{a, c}, {d}}, {{b, d}, {}}};
  EXPECT_EQ(plan_edges(all), (lists{{}, {}, {0}, {2}, {3, 1}}));
}
TEST(edges, others_keep_the_order_that_the_caller_asks_for) {
  const byte_range a(0, 256), b(256, 256), c(512, 256);
  const std::vector<touching> all = {{{}, {a}}, {{}, {b}}, {{a}, {}}, {{}, {c}}};
  const auto writes = [](const touching& x, const touching& y) { return !x.writes.empty() && !y.writes.empty(); };
  EXPECT_EQ(plan_edges(all, writes), (lists{{}, {0}, {0}, {1}}));
}
TEST(edges, ranges_that_only_touch_at_their_ends_need_none) {
  EXPECT_EQ(plan_edges(std::vector<touching>{{{}, {byte_range(0, 100)}}, {{byte_range(100, 4)}, {}}}), (lists{{}, {}}));
  EXPECT_EQ(plan_edges(std::vector<touching>{{{}, {byte_range(0, 100)}}, {{byte_range(99, 4)}, {}}}), (lists{{}, {0}}));
}
TEST(edges, none_is_superfluous_and_the_checker_finds_each_that_is_left_out) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto all = random_dispatches(seed, 40);
    const auto waits = plan_edges(all);
    EXPECT_TRUE(find_hazards(all, waits).empty()) << seed;
    for (std::size_t i = 0; i < waits.size(); ++i)
      for (std::size_t k = 0; k < waits[i].size(); ++k) {
        auto fewer = waits;
        fewer[i].erase(fewer[i].begin() + std::ptrdiff_t(k));
        EXPECT_FALSE(find_hazards(all, fewer).empty()) << "seed " << seed << ", edge " << waits[i][k] << " to " << i;
      }
  }
}

}  // namespace edges_test
}  // namespace isotope
