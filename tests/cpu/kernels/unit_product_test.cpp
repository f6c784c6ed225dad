#include "bf16_contract.hpp"
#include "imitated_unit.hpp"

/// Products of bf16 by a matrix unit: what surrounds the instructions runs on an imitation everywhere, the instructions where the processor has them.
namespace unit_product_test {
using namespace isotope_test;
using cpu::native::matmul;
using cpu::native::matrix_unit;
template <unit_fault Fault> using product_with = matmul<precision::bf16, imitated_unit<Fault>>;
using imitated = product_with<unit_fault::none>;

/// Tiles are for vectors of 16 f32: elsewhere the products under test would be others.
class unit_product : public testing::Test {
  void SetUp() override {
    if (!imitated::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};
template <class F> void all_orders(std::int64_t M, std::int64_t N, std::int64_t K, const F& element) {
  ASSERT_EQ("", (broken_in_any_order<imitated>(M, N, K, element)));
}

TEST_F(unit_product, sizes_around_tiles_keep_the_contract) {
  for (auto [M, N, K] :
       {std::array{5, 1, 1}, {15, 17, 31}, {17, 15, 33}, {31, 33, 15}, {33, 31, 17}, {16, 16, 32}, {32, 32, 64}, {48, 65, 95}})
    all_orders(M, N, K, random_number);
}
TEST_F(unit_product, sizes_around_blocks_and_cells_keep_the_contract) {
  for (auto [M, N, K] : {std::array{33, 40, 769}, {24, 65, 1537}, {288, 33, 40}, {40, 300, 64}, {600, 24, 33}})
    all_orders(M, N, K, random_number);
}
TEST_F(unit_product, rows_that_lie_in_whole_tiles_keep_the_contract) {
  for (int order = 0; order < 4; ++order)
    for (auto [M, N, K] : {std::array{64, 96, 128}, {96, 64, 768}, {32, 320, 64}})
      ASSERT_EQ("", (broken_contract<imitated>({M, N, K, order}, random_number)));
}
TEST_F(unit_product, sums_that_wait_for_chunks_keep_the_contract) {
  for (int order = 0; order < 4; ++order) ASSERT_EQ("", (broken_contract<imitated>({40, 33, 7713, order}, random_number)));
}
TEST_F(unit_product, numbers_that_a_unit_takes_for_zero_are_not_lost) {
  const auto large = [](double tiny, double other) {
    return [=](int operand, std::int64_t i, std::int64_t k) { return random_number(operand, i, k) * (operand == 0 ? tiny : other); };
  };
  for (const auto [M, N, K] : {std::array{33, 40, 50}, {40, 33, 800}}) {
    all_orders(M, N, K, large(0x1p-128, 0x1p100));
    all_orders(M, N, K, large(0x1p100, 0x1p-128));
    all_orders(M, N, K, large(0x1p-70, 0x1p-70));
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random_number(operand, i, k) * (i % 5 == 0 ? 0x1p-130 : i % 5 == 1 ? 0x1p-60 : i % 5 == 2 ? 0 : i % 5 == 3 ? 0x1p60 : 1);
    });
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      if (i == 3 && k == 8) return double(INFINITY);
      if (i == 12 && k == 9) return double(NAN);
      return operand == 0 && i == 5 ? 0.0 : k == 4 ? 0x1p-130 : random_number(operand, i, k);
    });
  }
}

TEST_F(unit_product, batches_accumulation_and_alpha_match_the_reference) {
  const array a = array::random({3, 33, 50}, dtype::bf16, 1), b = array::random({3, 50, 40}, dtype::bf16, 2),
              same = array::random({40, 50}, dtype::bf16, 3);
  for (const bool one : {false, true})
    for (const dtype result : {dtype::bf16, dtype::f32}) {
      const attributes t = op::matmul::constants{.format = result, .operands = 2, .alpha = one ? 1 : 0.5};
      std::vector<array> out;
      out.push_back(array::random({3, 33, 40}, result, 4));
      op_case c({a.v, one ? same.transposed() : b.v}, std::move(out), t);
      c.accumulate = result == dtype::f32;
      const auto wanted = c.run<cpu::kernel<op::matmul, precision::bf16, kernels::reference>>(nullptr);
      for (const int threads : {1, 2, 3, 5}) {
        const auto given = c.run<imitated>(&pool_of(threads));
        for (std::int64_t i = 0; i < wanted[0].count(); ++i)  // sum |a b| < 50: one place of bf16, and 16 u of the sum
          ASSERT_NEAR(wanted[0].at(i), given[0].at(i), 50 * 0x1p-20 + (result == dtype::bf16 ? 0x1p-7 * std::fabs(wanted[0].at(i)) : 0));
      }
    }
}
TEST_F(unit_product, fused_bodies_work_on_finished_cells) {
  using precision::bf16;
  for (auto [M, N, K] : {std::array{101, 300, 40}, {300, 100, 64}, {32, 64, 800}}) {
    const array a = array::random({M, K}, dtype::bf16, 1), b = array::random({K, N}, dtype::bf16, 2),
                turned = array::random({N, K}, dtype::bf16, 2), bias = array::random({N}, dtype::bf16, 3),
                residual = array::random({M, N}, dtype::bf16, 4);
    for (const bool turn : {false, true}) {
      const attributes t = op::matmul::constants{.format = dtype::bf16, .operands = 2};
      op_case c({a.v, turn ? turned.transposed() : b.v, bias.v, residual.v}, {}, t);
      c.out.push_back(array({M, N}, dtype::bf16));
      c.out.push_back(array({M, N}, dtype::bf16));
      c.body = {instruct<kernel_of<op::add, bf16, kernels::native>>(dtype::bf16, {isotope::gemm_result, 2}, 1),
                instruct<kernel_of<op::gelu_tanh, bf16, kernels::native>>(dtype::bf16, {max_inputs}),
                instruct<kernel_of<op::add, bf16, kernels::native>>(dtype::bf16, {max_inputs + 1, 3}, 0)};
      const auto wanted = c.run<cpu::kernel<op::matmul, bf16, kernels::reference>>(nullptr), given = c.run<imitated>(&pool_of(1));
      for (std::size_t k = 0; k < 2; ++k) {
        for (std::int64_t i = 0; i < wanted[k].count();
             ++i)  // roundings to bf16, of the product and of each instruction, may fall the other way
          ASSERT_NEAR(wanted[k].at(i), given[k].at(i), 0x1p-6 * std::fabs(wanted[k].at(i)) + 0x1p-6);
        for (const int threads : {2, 3}) ASSERT_EQ(given[k].bytes, c.run<imitated>(&pool_of(threads))[k].bytes);
      }
    }
  }
}

TEST_F(unit_product, a_unit_that_multiplies_wrongly_is_found) {
  const operands o{40, 40, 64};
  EXPECT_EQ("", (broken_contract<imitated>(o, random_number)));
  EXPECT_NE("", (broken_contract<product_with<unit_fault::loses_a_product>>(o, random_number)));
  EXPECT_NE("", (broken_contract<product_with<unit_fault::adds_a_tile_once_more>>(o, random_number)));
}

TEST(matrix_unit, a_refusal_says_why) {
  if (!cpu::tiles_refused().empty()) {
    EXPECT_NE(std::string_view::npos, cpu::tiles_refused().find("amx"));
  } else {
    EXPECT_TRUE(cpu::tile_features_here().tile && cpu::tile_features_here().bf16);
  }
}
/// The bits of the instructions are those of the manual.
TEST(matrix_unit, gives_the_bits_of_its_imitation) {
  if constexpr (!matmul<precision::bf16>::tiles) {
    GTEST_SKIP() << "not compiled for a processor with AMX";
  } else if (!matrix_unit::permitted()) {
    GTEST_SKIP() << cpu::tiles_refused();
  } else {
    for (auto [M, N, K] : {std::array{33, 40, 65}, {64, 96, 800}})
      for (const double scale : {1.0, 0x1p-62}) {
        const auto element = [=](int operand, std::int64_t i, std::int64_t k) {
          return scale * random_number(operand, i, k) * (k % 3 == 0 ? 0x1p20 : k % 3 == 1 ? 0x1p-20 : 1);
        };
        const matrix a(M, K, 0, false, [&](std::int64_t i, std::int64_t k) { return element(0, i, k); });
        const matrix b(K, N, 0, true, [&](std::int64_t k, std::int64_t j) { return element(1, j, k); });
        const attributes t = op::matmul::constants{.format = dtype::f32, .operands = 2};
        std::vector<array> out;
        out.emplace_back(shape{M, N}, dtype::f32);
        const op_case c({a.v, b.v}, std::move(out), t);
        EXPECT_EQ(c.run<imitated>(&pool_of(1))[0].bytes, c.run<matmul<precision::bf16>>(&pool_of(1))[0].bytes);
      }
  }
}
}  // namespace unit_product_test
