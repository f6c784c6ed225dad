#include "harness.hpp"

namespace isotope::op_test {
namespace embedding_test {

class embedding : public op_test {};
INSTANTIATE_TEST_SUITE_P(, embedding, everywhere(), target_name);

TEST_P(embedding, rows_are_copied_and_ids_outside_give_nan) {
  const auto& here = *this;
  for (std::int64_t C : {1, 5, 64, 67}) {
    const host table = random({11, C}, here.type, 1), ids({2, 4}, dtype::i32, {0, 10, 3, 3, -1, 11, 2147483647, -2147483648.0});
    const auto y = here.run<op::embedding>({table, ids});
    std::vector<double> expected;
    for (double id : ids.at)
      for (std::int64_t c = 0; c < C; ++c) expected.push_back(id < 0 || id > 10 ? nan : table[std::int64_t(id) * C + c]);
    ASSERT_EQ(y.at(0).dims, (shape{2, 4, C}));
    EXPECT_TRUE(same(y[0], expected));
  }
}
TEST_P(embedding, tables_of_16_bits_give_rows_of_the_program) {
  const auto& here = *this;
  for (const dtype half : {dtype::f16, dtype::bf16})
    for (std::int64_t C : {1, 64, 67}) {
      const host table = random({11, C}, half, 1), ids({4}, dtype::i32, {10, 0, -1, 11});
      const auto y = here.run<op::embedding>({table, ids}, op::embedding::constants{.format = dtype::f32});
      std::vector<double> expected;
      for (double id : ids.at)
        for (std::int64_t c = 0; c < C; ++c) expected.push_back(id < 0 || id > 10 ? nan : table[std::int64_t(id) * C + c]);
      ASSERT_EQ(y.at(0).type, dtype::f32);
      EXPECT_TRUE(same(y[0], expected));
    }
}
TEST_P(embedding, no_ids_an_empty_table_and_no_columns_are_legal) {
  const auto& here = *this;
  EXPECT_TRUE(same(here.run<op::embedding>({random({3, 4}, here.type, 1), full({0}, dtype::i32, 0)}).at(0), {}));
  EXPECT_TRUE(same(here.run<op::embedding>({full({0, 2}, here.type, 0), full({1}, dtype::i32, 0)}).at(0), {nan, nan}));
  EXPECT_TRUE(same(here.run<op::embedding>({full({3, 0}, here.type, 0), full({2}, dtype::i32, 0)}).at(0), {}));
}
TEST_P(embedding, gradient_adds_rows_in_ascending_order_bit_for_bit) {
  const auto& here = *this;
  for (std::int64_t C : {1, 7, 64}) {
    const host into = random({5, C}, here.accum, 1), dy = random({40, C}, here.type, 2, -1000, 1000);
    host ids = full({40}, dtype::i32, 0);
    for (std::size_t i = 0; i < 40; ++i) ids.at[i] = double((i * i) % 7) - 1;  // -1 and 5 are out of range
    auto expected = into.at;
    for (std::int64_t i = 0; i < 40; ++i)
      for (std::int64_t c = 0; c < C; ++c)
        if (ids[i] >= 0 && ids[i] < 5) {
          double& e = expected[std::size_t(std::int64_t(ids[i]) * C + c)];
          e = rounded(here.accum, e + dy[i * C + c]);
        }
    EXPECT_TRUE(same(here.run<op::embedding_grad>({into, dy, ids}).at(0), expected));
  }
}
TEST_P(embedding, gradient_keeps_the_order_of_ids_that_are_frequent_and_of_many_that_are_not) {
  const auto& here = *this;
  const std::int64_t V = 700, rows = 1301;
  for (std::int64_t C : {3, 36}) {
    const host into = random({V, C}, here.accum, 1), dy = random({rows, C}, here.type, 2, -1000, 1000);
    host ids = full({rows}, dtype::i32, 0);
    // Id 5 has a third of the rows, 699 has more than a hundred at the end, the others have a few; some ids are out of range.
    for (std::int64_t i = 0; i < rows; ++i)
      ids.at[std::size_t(i)] = i % 3 == 0 ? 5 : i > rows - 230 ? 699 : i % 97 == 0 ? -double(i) : double((i * i * 31 + i) % (V + 20));
    auto expected = into.at;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t c = 0; c < C; ++c)
        if (ids[i] >= 0 && ids[i] < double(V)) {
          double& e = expected[std::size_t(std::int64_t(ids[i]) * C + c)];
          e = rounded(here.accum, e + dy[i * C + c]);
        }
    EXPECT_TRUE(same(here.run<op::embedding_grad>({into, dy, ids}).at(0), expected)) << C;
  }
}
TEST_P(embedding, gradient_adds_runs_of_every_length_up_to_some_hundred) {
  const auto& here = *this;
  const std::int64_t V = 40;
  for (std::int64_t C : {4, 128}) {
    host ids({0}, dtype::i32, {});
    for (std::int64_t v = 0; v < V; ++v)
      for (std::int64_t i = 0; i < v * v / 10 + (v % 7); ++i) ids.at.push_back(double(v));
    const auto rows = std::int64_t(ids.at.size());
    ids.dims = shape{rows};
    for (std::int64_t i = 0; i < rows; ++i) std::swap(ids.at[std::size_t(i)], ids.at[std::size_t(i * 7919 % rows)]);
    const host into = random({V, C}, here.accum, 1), dy = random({rows, C}, here.type, 2, -1000, 1000);
    auto expected = into.at;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t c = 0; c < C; ++c) {
        double& e = expected[std::size_t(std::int64_t(ids[i]) * C + c)];
        e = rounded(here.accum, e + dy[i * C + c]);
      }
    EXPECT_TRUE(same(here.run<op::embedding_grad>({into, dy, ids}).at(0), expected)) << C;
  }
}
TEST_P(embedding, special_numbers_pass_through) {
  const auto& here = *this;
  const double tiny = rounded(here.type, 0x1p-130);
  const host table({2, 3}, here.type, {infinity, -infinity, nan, -0.0, tiny, 0});
  const auto y = here.run<op::embedding>({table, host({2}, dtype::i32, {1, 0})});
  EXPECT_TRUE(same(y.at(0), {-0.0, tiny, 0, infinity, -infinity, nan}));
  EXPECT_TRUE(std::signbit(y[0][0]));
}

}  // namespace embedding_test
}  // namespace isotope::op_test
