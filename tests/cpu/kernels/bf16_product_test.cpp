#include "bf16_contract.hpp"

/// Native bf16 matmuls: on the matrix unit if the processor has one, otherwise both by instructions for bf16 pairs and in f32, whichever of them it prefers.
namespace bf16_product_test {
using namespace isotope_test;
template <bool Fast> struct given_rate {
  static bool fast() { return Fast; }
};
template <bool Fast> using product = cpu::native::matmul<precision::bf16, cpu::native::matrix_unit, given_rate<Fast>>;

template <class F> void all_orders(std::int64_t M, std::int64_t N, std::int64_t K, const F& element) {
  ASSERT_EQ("", (broken_in_any_order<product<true>>(M, N, K, element)));
  ASSERT_EQ("", (broken_in_any_order<product<false>>(M, N, K, element)));
}
template <class F> void expect_contract(const operands& o, const F& element) {
  ASSERT_EQ("", (broken_contract<product<true>>(o, element)));
  ASSERT_EQ("", (broken_contract<product<false>>(o, element)));
}

TEST(pair_rate, is_that_of_the_processor) {
  EXPECT_TRUE(cpu::pairs_are_slow("GenuineIntel", true));
  EXPECT_FALSE(cpu::pairs_are_slow("GenuineIntel", false));
  EXPECT_FALSE(cpu::pairs_are_slow("AuthenticAMD", true));
  EXPECT_FALSE(cpu::pairs_are_slow("AuthenticAMD", false));
}

TEST(bf16_product, sizes_around_tiles_panels_pairs_and_blocks_keep_the_contract) {
  for (auto [M, N, K] :
       {std::array{5, 16, 1}, {12, 32, 2}, {13, 33, 3}, {11, 47, 31}, {24, 31, 33}, {25, 65, 767}, {37, 15, 769}, {6, 100, 1537}})
    all_orders(M, N, K, random_number);
}
TEST(bf16_product, shapes_of_a_transformer_keep_the_contract) {
  for (auto [M, N, K] : {std::array{256, 96, 768}, {96, 256, 768}, {64, 50, 128}, {50, 768, 64}, {300, 64, 300}})
    for (int order = 0; order < 3; ++order) expect_contract({M, N, K, order}, random_number);
}
TEST(bf16_product, sums_that_wait_for_chunks_keep_the_contract) {
  for (int order = 0; order < 4; ++order) expect_contract({20, 40, 7681, order}, random_number);
}

/// Subnormals times large numbers, products and sums below 2^-126, rows of zeros and infinities.
TEST(bf16_product, subnormal_numbers_are_not_lost) {
  const auto large = [](double tiny, double other) {
    return [=](int operand, std::int64_t i, std::int64_t k) { return random_number(operand, i, k) * (operand == 0 ? tiny : other); };
  };
  for (const auto [M, N, K] : {std::array{30, 70, 50}, {13, 33, 7}, {70, 30, 800}}) {
    all_orders(M, N, K, large(0x1p-128, 0x1p100));
    all_orders(M, N, K, large(0x1p100, 0x1p-128));
    all_orders(M, N, K, large(0x1p-64, 0x1p-64));
    all_orders(M, N, K, large(0x1p-70, 0x1p-70));
    all_orders(M, N, K, large(0x1p-120, 1));
    // Numbers of other magnitudes in the same tile and in the same sum, and zeros.
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random_number(operand, i, k) * (i % 5 == 0 ? 0x1p-130 : i % 5 == 1 ? 0x1p-60 : i % 5 == 2 ? 0 : i % 5 == 3 ? 0x1p60 : 1);
    });
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random_number(operand, i, k) * (k % 3 == 0 ? 0x1p-130 : k % 3 == 1 ? 0x1p-70 : 0);
    });
  }
}
TEST(bf16_product, one_subnormal_number_among_others_counts) {
  all_orders(40, 40, 90, [](int operand, std::int64_t i, std::int64_t k) {
    if (operand == 0) return i == 17 && k == 41 ? 0x1p-133 : 0.0;
    return i == 33 ? 0x1p120 : random_number(1, i, k);
  });
}
TEST(bf16_product, subnormal_numbers_times_large_ones_count_in_either_operand) {
  // The sums of the other terms are not small, so a small result does not reveal that a subnormal operand was flushed.
  for (const int tiny : {0, 1})
    all_orders(40, 40, 90, [=](int operand, std::int64_t i, std::int64_t k) {
      if (k == 41) return operand == tiny ? 0x1p-127 : 0x1p120;
      return operand == tiny ? random_number(operand, i, k) * 0x1p-100 : random_number(operand, i, k) * 0x1p80;
    });
}
TEST(bf16_product, infinity_times_a_subnormal_number_is_infinite) {
  for (const int tiny : {0, 1})
    all_orders(33, 34, 40, [=](int operand, std::int64_t i, std::int64_t k) {
      if (k == 9) return operand == tiny ? 0x1p-130 : double(INFINITY);
      return random_number(operand, i, k);
    });
}
TEST(bf16_product, infinities_and_nan_stay) {
  all_orders(26, 34, 40, [](int operand, std::int64_t i, std::int64_t k) {
    if (i == 3 && k == 8) return double(INFINITY);
    if (i == 12 && k == 9) return double(NAN);
    return operand == 0 && i == 5 ? 0.0 : random_number(operand, i, k);
  });
}
}  // namespace bf16_product_test
