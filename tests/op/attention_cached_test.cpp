#include "harness.hpp"

#include <isotope/op/attention.hpp>
#include <isotope/op/attention_cached.hpp>

#include <array>
#include <cmath>

namespace isotope::op_test {
namespace attention_cached_test {

class attention_cached : public op_test {};
INSTANTIATE_TEST_SUITE_P(, attention_cached, everywhere_with_native(), target_name);

host places(std::vector<double> x) { return {{std::int64_t(x.size())}, dtype::i32, std::move(x)}; }

TEST_P(attention_cached, rows_are_appended_where_they_belong_and_idle_ones_nowhere) {
  const auto& here = *this;
  constexpr std::int64_t slots = 3, G = 2, T = 5, D = 7;
  const host keys = random({slots, G, T, D}, here.type, 1), values = random({slots, G, T, D}, here.type, 2);
  // Rows 1 and 4 have one place; rows 2, 3, 6 and 7 have none.
  const host sequence = places({0, 2, -1, 3, 2, 1, 1, 0}), position = places({0, 4, 0, 0, 4, 2, 5, -1});
  const host k = random({8, G * D}, here.type, 3), v = random({8, G * D}, here.type, 4);
  auto want_keys = keys.at, want_values = values.at;
  for (const std::int64_t n : {0, 1, 4, 5})
    for (std::int64_t g = 0; g < G; ++g)
      for (std::int64_t d = 0; d < D; ++d) {
        const auto to = std::size_t(((std::int64_t(sequence[n]) * G + g) * T + std::int64_t(position[n])) * D + d);
        want_keys[to] = k[(n * G + g) * D + d];
        want_values[to] = v[(n * G + g) * D + d];
      }
  const auto y = here.run<op::cache_append>({keys, values, k, v, sequence, position});
  EXPECT_TRUE(same(y.at(0), want_keys));
  EXPECT_TRUE(same(y.at(1), want_values));
}
TEST_P(attention_cached, gives_the_rows_of_causal_attention_in_any_slot_and_order) {
  const auto& here = *this;
  constexpr std::int64_t slots = 3, H = 4, G = 2, T = 37, S = 37;
  for (const auto& [D, window] : {std::pair<std::int64_t, std::int64_t>{12, 0}, {12, 5}, {64, 0}, {64, 5}, {128, 0}}) {
    const host q = random({1, S, H * D}, here.type, 1), k = random({1, S, G * D}, here.type, 2), v = random({1, S, G * D}, here.type, 3);
    const auto whole =
        here.run<op::attention>({q, k, v}, op::attention::constants{.heads = H, .kv_heads = G, .causal = true, .window = window});
    host keys = full({slots, G, T, D}, here.type, nan), values = keys;  // no other slot is read
    for (std::int64_t t = 0; t < S; ++t)
      for (std::int64_t g = 0; g < G; ++g)
        for (std::int64_t d = 0; d < D; ++d) {
          keys.at[std::size_t(((G + g) * T + t) * D + d)] = k[(t * G + g) * D + d];
          values.at[std::size_t(((G + g) * T + t) * D + d)] = v[(t * G + g) * D + d];
        }
    // Every position, the last one first, with an idle row before each.
    host packed = full({2 * S, H * D}, here.type, 1);
    std::vector<double> sequence, position;
    for (std::int64_t t = S; t-- > 0;) {
      sequence.push_back(-1), position.push_back(0);
      for (std::int64_t c = 0; c < H * D; ++c) packed.at[position.size() * std::size_t(H * D) + std::size_t(c)] = q[t * H * D + c];
      sequence.push_back(1), position.push_back(double(t));
    }
    const auto y = here.run<op::attention_cached>({packed, keys, values, places(sequence), places(position)},
                                                  op::attention_cached::constants{.heads = H, .window = window});
    // Both are sums of up to T terms of weights that may be rounded to the program's format, and results rounded to it.
    const double unit = here.type == dtype::bf16 ? 0x1p-7 : here.roundings(4.0 * T);
    for (std::int64_t t = 0; t < S; ++t)
      for (std::int64_t c = 0; c < H * D; ++c) {
        const auto row = 2 * (S - 1 - t);
        EXPECT_EQ(y.at(0)[row * H * D + c], 0) << "an idle row";
        EXPECT_TRUE(std::fabs(y[0][(row + 1) * H * D + c] - whole.at(0)[t * H * D + c]) <= 2 * unit) << t << " " << c << " " << window;
      }
  }
}
TEST_P(attention_cached, a_row_has_the_same_bits_alone_and_among_others) {
  const auto& here = *this;
  constexpr std::int64_t slots = 2, H = 3, T = 70, D = 20, N = 9;
  const host keys = random({slots, H, T, D}, here.type, 1), values = random({slots, H, T, D}, here.type, 2);
  const host q = random({N, H * D}, here.type, 3);
  const std::vector<double> sequence{0, 1, 1, 0, 0, 1, 0, 1, 0}, position{69, 3, 68, 0, 15, 16, 31, 32, 4};
  const op::attention_cached::constants c{.heads = H};
  const auto all = here.run<op::attention_cached>({q, keys, values, places(sequence), places(position)}, c);
  for (std::int64_t n = 0; n < N; ++n) {
    const auto from = q.at.begin() + n * H * D, to = all.at(0).at.begin() + n * H * D;
    const host one({1, H * D}, here.type, std::vector<double>(from, from + H * D));
    const auto alone =
        here.run<op::attention_cached>({one, keys, values, places({sequence[std::size_t(n)]}), places({position[std::size_t(n)]})}, c);
    EXPECT_TRUE(same(alone.at(0), std::vector<double>(to, to + H * D))) << n;
  }
}
TEST_P(attention_cached, tokens_of_prompts_have_the_bits_that_they_have_alone_in_batch_invariant_plans) {
  const auto& here = *this;
  constexpr std::int64_t slots = 3, T = 60;
  for (const auto& [H, G, D, window] :
       {std::array<std::int64_t, 4>{2, 1, 20, 0}, {7, 1, 64, 0}, {3, 1, 128, 0}, {2, 1, 20, 3}, {2, 1, 20, 6}, {4, 2, 64, 9}}) {
    const host keys = random({slots, G, T, D}, here.type, 1), values = random({slots, G, T, D}, here.type, 2);
    std::vector<double> sequence, position;
    const auto prompt = [&](double slot, int from, int tokens) {
      for (int t = from; t < from + tokens; ++t) sequence.push_back(slot), position.push_back(t);
    };
    prompt(1, 0, 13), prompt(0, 37, 23), prompt(2, 59, 2), prompt(2, 7, 4), prompt(-1, 0, 5), prompt(1, 20, 9);
    const std::int64_t N = std::int64_t(sequence.size());
    const host q = random({N, H * D}, here.type, 3);
    const op::attention_cached::constants c{.heads = H, .window = window, .batch_invariant = true};
    const auto all = here.run<op::attention_cached>({q, keys, values, places(sequence), places(position)}, c);
    for (std::int64_t n = 0; n < N; ++n) {
      const auto from = q.at.begin() + n * H * D, to = all.at(0).at.begin() + n * H * D;
      const host one({1, H * D}, here.type, std::vector<double>(from, from + H * D));
      const auto alone =
          here.run<op::attention_cached>({one, keys, values, places({sequence[std::size_t(n)]}), places({position[std::size_t(n)]})}, c);
      EXPECT_TRUE(same(alone.at(0), std::vector<double>(to, to + H * D))) << n << " " << D << " " << window;
    }
  }
}
TEST_P(attention_cached, prompts_give_what_single_tokens_give_and_the_same_bits_beside_others) {
  const auto& here = *this;
  constexpr std::int64_t slots = 3, H = 4, G = 2, T = 200;
  for (const auto& sizes : {std::pair<std::int64_t, std::int64_t>{32, 0}, {20, 0}, {32, 9}, {20, 70}}) {
    const std::int64_t D = sizes.first, window = sizes.second;
    const host keys = random({slots, G, T, D}, here.type, 1), values = random({slots, G, T, D}, here.type, 2);
    struct part {
      double slot;
      int from, tokens;
    };
    const host queries = random({(slots + 1) * 2 * T, H * D}, here.type, 3);  // of each slot and position
    const auto run = [&](const std::vector<part>& parts, bool invariant) {
      std::vector<double> sequence, position, q;
      for (const part& p : parts)
        for (int t = p.from; t < p.from + p.tokens; ++t) {
          sequence.push_back(p.slot), position.push_back(t);
          const auto row = queries.at.begin() + (std::int64_t(p.slot + 1) * 2 * T + t) * H * D;
          q.insert(q.end(), row, row + H * D);
        }
      return here.run<op::attention_cached>(
          {host({std::int64_t(sequence.size()), H * D}, here.type, q), keys, values, places(sequence), places(position)},
          op::attention_cached::constants{.heads = H, .window = window, .batch_invariant = invariant});
    };
    // A prompt behind cached tokens that fills two blocks of 64, one of 16, single tokens, idle rows, and a prompt that leads beyond the cache.
    const auto given = run({{1, 31, 130}, {2, 0, 16}, {0, 199, 1}, {0, 5, 1}, {-1, 0, 20}, {2, 180, 24}}, false),
               wanted = run({{1, 31, 130}, {2, 0, 16}, {0, 199, 1}, {0, 5, 1}, {-1, 0, 20}, {2, 180, 24}}, true),
               moved = run({{0, 5, 1}, {0, 140, 25}, {2, 0, 16}, {1, 30, 150}}, false);
    const double unit = here.type == dtype::bf16 ? 0x1p-7 : here.roundings(4.0 * T);
    for (std::size_t i = 0; i < given.at(0).at.size(); ++i)
      ASSERT_TRUE(std::fabs(given.at(0).at[i] - wanted.at(0).at[i]) <= 2 * unit) << i / (H * D) << " " << D << " " << window;
    const auto rows = [&](const host& y, std::int64_t first, std::int64_t count) {
      return std::vector<double>(y.at.begin() + first * H * D, y.at.begin() + (first + count) * H * D);
    };
    EXPECT_EQ(rows(given.at(0), 130, 16), rows(moved.at(0), 26, 16)) << "as many rows, in another place, beside others";
  }
}
TEST_P(attention_cached, a_nan_among_the_values_of_a_prompt_reaches_only_the_queries_that_see_it) {
  const auto& here = *this;
  constexpr std::int64_t T = 90, D = 32, S = 80;
  for (const std::int64_t window : {0, 20}) {
    host keys = random({1, 1, T, D}, here.type, 1), values = random({1, 1, T, D}, here.type, 2);
    const host q = random({S, D}, here.type, 3);
    values.at[40 * D + 3] = nan;
    std::vector<double> position;
    for (std::int64_t t = 5; t < 5 + S; ++t) position.push_back(double(t));
    const auto y = here.run<op::attention_cached>({q, keys, values, places(std::vector<double>(std::size_t(S), 0)), places(position)},
                                                  op::attention_cached::constants{.heads = 1, .window = window});
    for (std::int64_t n = 0; n < S; ++n)
      EXPECT_EQ(std::isnan(y[0][n * D + 3]), n + 5 >= 40 && (window == 0 || n + 5 < 40 + window)) << n << " " << window;
  }
}
TEST_P(attention_cached, nan_reaches_only_the_queries_that_see_it) {
  const auto& here = *this;
  constexpr std::int64_t T = 6, D = 8;
  host keys = random({1, 1, T, D}, here.type, 1);
  const host values = random({1, 1, T, D}, here.type, 2), q = random({3, D}, here.type, 3);
  keys.at[3 * D + 5] = nan;
  const auto y =
      here.run<op::attention_cached>({q, keys, values, places({0, 0, 0}), places({2, 3, 5})}, op::attention_cached::constants{.heads = 1});
  for (std::int64_t d = 0; d < D; ++d) {
    EXPECT_TRUE(std::isfinite(y.at(0)[d]));
    EXPECT_TRUE(std::isnan(y[0][D + d]) && std::isnan(y[0][2 * D + d]));
  }
}
TEST_P(attention_cached, no_rows_are_nothing_to_do) {
  const auto& here = *this;
  const host cache = random({2, 1, 3, 4}, here.type, 1), none = full({0, 4}, here.type, 0);
  EXPECT_TRUE(same(here.run<op::cache_append>({cache, cache, none, none, places({}), places({})}).at(0), cache.at));
  EXPECT_TRUE(same(
      here.run<op::attention_cached>({none, cache, cache, places({}), places({})}, op::attention_cached::constants{.heads = 1}).at(0), {}));
}

}  // namespace attention_cached_test
}  // namespace isotope::op_test
