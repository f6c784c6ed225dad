// Compares attention_range with the definition: query s attends to key t if t <= s + T - S, and in a window w if also t > s + T - S - w.
#include <gtest/gtest.h>
#include <isotope/op/attention_range.hpp>

namespace isotope::op_test {
namespace attention_range_test {

constexpr op::attention_constants of(bool causal, std::int64_t window) { return {.causal = causal, .window = window}; }
/// Calls f(S, T, causal, window) for many combinations.
template <class F> void for_all(const F& f) {
  for (const std::int64_t T : {1, 2, 3, 7, 16, 33, 64, 65, 100})
    for (const std::int64_t S : {1, 2, 5, 16, 31, 64, 65, 100})
      for (const std::int64_t window : {0, 1, 2, 5, 16, 17, 32, 63, 64, 65, 99, 100, 200}) {
        if (S <= T) f(S, T, true, window);
        if (window == 0) f(S, T, false, window);
      }
}
bool sees(std::int64_t S, std::int64_t T, bool causal, std::int64_t window, std::int64_t s, std::int64_t t) {
  const auto own = s + T - S;
  return !causal || (t <= own && (window == 0 || t > own - window));
}

TEST(attention_range, keys_queries_and_pairs_are_those_of_the_definition) {
  for_all([](std::int64_t S, std::int64_t T, bool causal, std::int64_t window) {
    const op::attention_range r(of(causal, window), S, T);
    std::int64_t pairs = 0;
    for (std::int64_t s = 0; s < S; ++s)
      for (std::int64_t t = 0; t < T; ++t) {
        const bool seen = sees(S, T, causal, window, s, t);
        const auto keys = r.keys(s), queries = r.queries(t);
        ASSERT_EQ(t >= keys.first && t < keys.end, seen) << S << ' ' << T << ' ' << window << ": " << s << ' ' << t;
        ASSERT_EQ(s >= queries.first && s < queries.end, seen) << S << ' ' << T << ' ' << window << ": " << s << ' ' << t;
        pairs += seen ? 1 : 0;
      }
    EXPECT_EQ(r.pairs(), pairs) << S << ' ' << T << ' ' << causal << ' ' << window;
  });
}
// A kernel that goes through these tiles visits exactly the tiles in which some query of the block attends to a key.
TEST(attention_range, tiles_are_those_that_hold_a_pair) {
  for (const std::int64_t tile : {1, 4, 16, 64})
    for (const std::int64_t block : {1, 16, 64})
      for_all([&](std::int64_t S, std::int64_t T, bool causal, std::int64_t window) {
        const op::attention_range r(of(causal, window), S, T);
        for (std::int64_t q0 = 0; q0 < S; q0 += block) {
          const auto end = std::min(S, q0 + block);
          const auto got = r.keys_in_tiles(q0, end, tile);
          std::int64_t needed = 0;
          for (std::int64_t k0 = 0; k0 < T; k0 += tile) {
            bool some = false;
            for (std::int64_t s = q0; s < end; ++s)
              for (std::int64_t t = k0; t < std::min(T, k0 + tile); ++t) some = some || sees(S, T, causal, window, s, t);
            needed += some ? 1 : 0;
          }
          ASSERT_EQ((got.end - got.first + tile - 1) / tile, needed) << S << ' ' << T << ' ' << window << ' ' << tile << ' ' << q0;
          ASSERT_EQ(got.first % tile, 0);
        }
      });
}
TEST(attention_range, of_a_sequence_on_itself_is_a_triangle_and_of_a_window_a_band) {
  static_assert(op::attention_range(of(true, 0), 1024, 1024).pairs() == 1024 * 1025 / 2);
  static_assert(op::attention_range(of(true, 256), 4096, 4096).pairs() == 256 * 257 / 2 + (4096 - 256) * 256);
  static_assert(op::attention_range(of(true, std::int64_t(1) << 60), 8, 8).pairs() == 36);
  static_assert(op::attention_range(of(false, 0), 3, 5).pairs() == 15);
}

}  // namespace attention_range_test
}  // namespace isotope::op_test
