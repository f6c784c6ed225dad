// Sequences are distributed over runs: each once, within the room of its bucket, with little left empty.
#include <isotope/core/philox.hpp>
#include <isotope/generate/token_packing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace token_packing_test {

using isotope::token_packing;

/// Checks a packing and returns the tokens of the buckets of its runs.
std::int64_t checked(const token_packing& p, const std::vector<std::int32_t>& lengths) {
  std::vector<int> seen(lengths.size(), 0);
  std::int64_t room = 0;
  std::size_t next = 0;
  for (const auto& run : p.runs()) {
    EXPECT_EQ(run.first, next);
    EXPECT_GT(run.last, run.first);
    next = run.last;
    const auto& bucket = p.buckets()[run.bucket];
    std::int64_t tokens = 0;
    for (std::size_t k = run.first; k < run.last; ++k) tokens += lengths[p.order()[k]], ++seen[p.order()[k]];
    EXPECT_LE(tokens, bucket.tokens);
    EXPECT_LE(run.last - run.first, std::size_t(bucket.sequences));
    room += bucket.tokens;
  }
  EXPECT_EQ(next, p.order().size());
  for (std::size_t k = 0; k < lengths.size(); ++k) EXPECT_EQ(seen[k], lengths[k] > 0 ? 1 : 0) << k;
  return room;
}

TEST(token_packing, takes_the_bucket_that_costs_least) {
  token_packing p({{16, 2}, {64, 8}, {256, 32}, {1024, 128}});
  const auto buckets = [&](std::vector<std::int32_t> lengths) {
    p.pack(lengths);
    checked(p, lengths);
    std::vector<int> tokens;
    for (const auto& run : p.runs()) tokens.push_back(p.buckets()[run.bucket].tokens);
    return tokens;
  };
  using sizes = std::vector<int>;
  EXPECT_EQ(buckets({}), sizes{});
  EXPECT_EQ(buckets({0, 0}), sizes{});
  EXPECT_EQ(buckets({16}), sizes{16});
  EXPECT_EQ(buckets({17}), sizes{64});
  EXPECT_EQ(buckets({1024, 1, 0}), (sizes{1024, 16}));
  EXPECT_EQ(buckets(std::vector<std::int32_t>(10, 30)), (sizes{256, 64}));  // not 1024
  EXPECT_EQ(buckets({4, 4, 4}), (sizes{16, 16}));                           // 2 (16 + 16) tokens, not 64 + 16
  EXPECT_EQ(buckets({12, 12, 12}), sizes{64});                              // not 3 (16 + 16)
}
TEST(token_packing, leaves_a_fifth_empty_at_most_in_a_run_of_a_fine_size) {
  const auto sizes = isotope::fine_sizes(4096);
  EXPECT_EQ(sizes.front(), 8);
  EXPECT_EQ(sizes.size(), 31u);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const int next = k + 1 < sizes.size() ? sizes[k + 1] : 4096, n = sizes[k];
    EXPECT_EQ(n % (n < 64 ? 8 : n < 128 ? 16 : 32), 0);
    EXPECT_LE(next - n - 1, std::max(8, next / 5)) << "for a text of " << n + 1 << " tokens";
  }
  EXPECT_EQ(isotope::fine_sizes(17), (std::vector<int>{8, 16}));
  EXPECT_TRUE(isotope::fine_sizes(8).empty());
}
TEST(token_packing, leaves_little_empty) {
  token_packing p({{16, 2}, {64, 8}, {256, 32}, {1024, 128}, {4096, 512}});
  std::vector<std::int32_t> lengths;
  std::int64_t tokens = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const auto word = isotope::philox(1, i, 0, 0)[0];
    lengths.push_back(std::int32_t(i % 50 == 0 ? word % 257 : 10 + word % 60));
    tokens += lengths.back();
  }
  p.pack(lengths);
  const std::int64_t room = checked(p, lengths);
  EXPECT_LE(double(room), 1.02 * double(tokens));
}
TEST(token_packing, is_the_same_in_every_order_but_for_the_indices) {
  token_packing a({{16, 2}, {64, 8}}), b({{16, 2}, {64, 8}});
  const std::vector<std::int32_t> up{3, 5, 9, 20, 31, 64}, down{64, 31, 20, 9, 5, 3};
  a.pack(up), b.pack(down);
  ASSERT_EQ(a.runs().size(), b.runs().size());
  for (std::size_t r = 0; r < a.runs().size(); ++r) {
    EXPECT_EQ(a.runs()[r].bucket, b.runs()[r].bucket);
    EXPECT_EQ(a.runs()[r].last, b.runs()[r].last);
  }
}

}  // namespace token_packing_test
