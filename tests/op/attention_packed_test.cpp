#include "harness.hpp"

#include <isotope/op/attention.hpp>
#include <isotope/op/attention_packed.hpp>
#include <isotope/op/pool.hpp>

#include <cmath>

namespace isotope::op_test {
namespace attention_packed_test {

class attention_packed : public op_test {};
INSTANTIATE_TEST_SUITE_P(, attention_packed, everywhere(), target_name);

host starts_of(std::vector<double> x) { return {{std::int64_t(x.size())}, dtype::i32, std::move(x)}; }
/// Rows first to end - 1 of x.
host part(const host& x, std::int64_t first, std::int64_t end) {
  const std::int64_t C = x.dims[1];
  return {{end - first, C}, x.type, std::vector<double>(x.at.begin() + first * C, x.at.begin() + end * C)};
}
host whole(const host& x) { return {{1, x.dims[0], x.dims[1]}, x.type, x.at}; }
std::vector<double> of(const host& x) { return x.at; }

TEST_P(attention_packed, gives_attention_within_each_sequence_and_nothing_between) {
  const auto& here = *this;
  constexpr std::int64_t H = 3, D = 20, N = 97;
  const host q = random({N, H * D}, here.type, 1), k = random({N, H * D}, here.type, 2), v = random({N, H * D}, here.type, 3);
  const std::vector<double> starts{2, 7, 7, 80, 81, 95};  // rows 0, 1, 95 and 96 are idle, sequence 1 is empty
  for (const bool causal : {false, true}) {
    const auto y =
        here.run<op::attention_packed>({q, k, v, starts_of(starts)}, op::attention_packed::constants{.heads = H, .causal = causal});
    for (const std::int64_t n : {0, 1, 95, 96}) EXPECT_TRUE(same(part(y.at(0), n, n + 1), std::vector<double>(H * D, 0))) << n;
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
      const auto first = std::int64_t(starts[b]), end = std::int64_t(starts[b + 1]);
      if (first == end) continue;
      const auto alone = here.run<op::attention>({whole(part(q, first, end)), whole(part(k, first, end)), whole(part(v, first, end))},
                                                 op::attention::constants{.heads = H, .kv_heads = H, .causal = causal});
      // Both are sums of up to 73 terms of weights that may be rounded to the program's format, and results rounded to it.
      const double unit = here.type == dtype::bf16 ? 0x1p-7 : here.roundings(4.0 * 73);
      for (std::int64_t i = 0; i < (end - first) * H * D; ++i)
        EXPECT_TRUE(std::fabs(y[0][first * H * D + i] - alone.at(0)[i]) <= 2 * unit) << b << " " << i << " " << causal;
    }
  }
}
TEST_P(attention_packed, a_sequence_has_the_same_bits_alone_and_among_others) {
  const auto& here = *this;
  constexpr std::int64_t H = 2, D = 32, N = 210;
  const host q = random({N, H * D}, here.type, 1), k = random({N, H * D}, here.type, 2), v = random({N, H * D}, here.type, 3);
  const std::vector<double> starts{0, 5, 135, 136, 200, 210};
  const op::attention_packed::constants c{.heads = H};
  const auto all = here.run<op::attention_packed>({q, k, v, starts_of(starts)}, c);
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    const auto first = std::int64_t(starts[b]), end = std::int64_t(starts[b + 1]);
    const auto alone = here.run<op::attention_packed>(
        {part(q, first, end), part(k, first, end), part(v, first, end), starts_of({0, double(end - first)})}, c);
    EXPECT_TRUE(same(alone.at(0), of(part(all.at(0), first, end)))) << b;
    const auto pooled =
        here.run<op::pool>({part(q, first, end), starts_of({0, double(end - first)})}, op::pool::constants{.normalise = true});
    const auto among = here.run<op::pool>({q, starts_of(starts)}, op::pool::constants{.normalise = true});
    EXPECT_TRUE(same(pooled.at(0), of(part(among.at(0), std::int64_t(b), std::int64_t(b) + 1)))) << b;
  }
}
TEST_P(attention_packed, nan_stays_in_its_sequence) {
  const auto& here = *this;
  constexpr std::int64_t N = 12, D = 8;
  host k = random({N, D}, here.type, 1);
  const host q = random({N, D}, here.type, 2), v = random({N, D}, here.type, 3);
  k.at[6 * D + 5] = nan;
  const auto y = here.run<op::attention_packed>({q, k, v, starts_of({0, 4, 9, 12})}, op::attention_packed::constants{.heads = 1});
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t d = 0; d < D; ++d) EXPECT_EQ(std::isnan(y[0][n * D + d]), n >= 4 && n < 9) << n;
}
TEST_P(attention_packed, starts_beyond_the_rows_read_nothing_outside) {
  const auto& here = *this;
  const host x = random({5, 8}, here.type, 1);
  const auto near = here.run<op::attention_packed>({x, x, x, starts_of({0, 3, 5})}, op::attention_packed::constants{.heads = 2});
  const auto far = here.run<op::attention_packed>({x, x, x, starts_of({-7, 3, 2000000000})}, op::attention_packed::constants{.heads = 2});
  EXPECT_TRUE(same(far.at(0), near.at(0).at));
  EXPECT_TRUE(
      same(here.run<op::pool>({x, starts_of({-7, 3, 2000000000})}, {}).at(0), here.run<op::pool>({x, starts_of({0, 3, 5})}, {}).at(0).at));
}
TEST_P(attention_packed, no_rows_and_no_sequences_are_nothing_to_do) {
  const auto& here = *this;
  const host none = full({0, 4}, here.type, 0), some = random({3, 4}, here.type, 1);
  const op::attention_packed::constants c{.heads = 1};
  EXPECT_TRUE(same(here.run<op::attention_packed>({none, none, none, starts_of({0, 0})}, c).at(0), {}));
  EXPECT_TRUE(same(here.run<op::attention_packed>({some, some, some, starts_of({0})}, c).at(0), std::vector<double>(12, 0)));
  EXPECT_TRUE(same(here.run<op::pool>({some, starts_of({0})}, {}).at(0), {}));
}
TEST_P(attention_packed, pools_the_mean_or_the_first_row_and_divides_by_the_norm) {
  const auto& here = *this;
  const host x({5, 2}, here.type, {3, 8, 5, 4, 1, 0, 0, 0, 6, 8});
  const auto starts = starts_of({0, 2, 2, 3, 4, 5});
  using constants = op::pool::constants;
  EXPECT_TRUE(same(here.run<op::pool>({x, starts}, constants{}).at(0), {4, 6, 0, 0, 1, 0, 0, 0, 6, 8}));
  EXPECT_TRUE(same(here.run<op::pool>({x, starts}, constants{.how = pooling_kind::first}).at(0), {3, 8, 0, 0, 1, 0, 0, 0, 6, 8}));
  const auto y = here.run<op::pool>({x, starts}, constants{.how = pooling_kind::first, .normalise = true});
  const std::vector<double> norms{std::sqrt(73.0), 1, 1, 1, 10};
  const auto raw = here.run<op::pool>({x, starts}, constants{.how = pooling_kind::first});
  for (std::int64_t i = 0; i < 10; ++i)
    EXPECT_TRUE(std::fabs(y[0][i] - raw[0][i] / norms[std::size_t(i / 2)]) <= (here.type == dtype::bf16 ? 0x1p-7 : 0x1p-22)) << i;
}

}  // namespace attention_packed_test
}  // namespace isotope::op_test
