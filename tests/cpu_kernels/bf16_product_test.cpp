#include "compare.hpp"

/// Native products of bf16 against the same products in f32, which are made of the same operands, widened: within one unit in the last place of a
/// bf16 result and 16 u sum |a b|, u = 2^-24, and below 2^-126 half a place of 2^-149 for each term on either side. Where a processor multiplies
/// pairs of bf16 it takes subnormal numbers for zero; results may not.
namespace {
using namespace isotope_test;
using pairs = cpu::kernel<op::matmul, precision::bf16, kernels::native>;
using widened = cpu::kernel<op::matmul, precision::f32, kernels::native>;

struct operands {
  std::int64_t M, N, K;
  int order = 0;         // bit 0: A is stored (K,M), bit 1: B is stored (N,K)
  std::int64_t gap = 0;  // elements between rows in memory
};

/// A matrix (rows, cols) whose rows lie cols + gap apart.
struct matrix {
  array memory;
  cpu::view v;
  template <class F>
  matrix(std::int64_t rows, std::int64_t cols, std::int64_t gap, bool turned, const F& element)
      : memory({turned ? cols : rows, (turned ? rows : cols) + gap}, dtype::bf16, 77), v(memory.v) {
    const std::int64_t ld = v.dims[-1];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) memory.set(turned ? j * ld + i : i * ld + j, element(i, j));
    v.dims = {rows, cols};
    v.strides = turned ? extents{1, ld} : extents{ld, 1};
  }
  double at(std::int64_t i, std::int64_t j) const { return memory.at(i * v.strides[0] + j * v.strides[1]); }
};

template <class F> void expect_contract(const operands& o, const F& element) {
  SCOPED_TRACE(testing::Message() << "M " << o.M << " N " << o.N << " K " << o.K << " order " << o.order << " gap " << o.gap);
  const matrix a(o.M, o.K, o.gap, (o.order & 1) != 0, [&](std::int64_t i, std::int64_t k) { return element(0, i, k); });
  const matrix b(o.K, o.N, o.gap, (o.order & 2) != 0, [&](std::int64_t k, std::int64_t j) { return element(1, j, k); });
  for (const dtype result : {dtype::bf16, dtype::f32}) {
    attributes t;
    t.i = {1 + std::int64_t(result), 2};
    t.f = {1, 0};
    std::vector<array> out;
    out.emplace_back(shape{o.M, o.N}, result);
    const op_case c({a.v, b.v}, std::move(out), t);
    const auto wanted = c.run<widened>(&pool_of(1)), given = c.run<pairs>(&pool_of(1));
    for (std::int64_t i = 0; i < o.M; ++i)
      for (std::int64_t j = 0; j < o.N; ++j) {
        const double w = wanted[0].at(i * o.N + j), g = given[0].at(i * o.N + j);
        if (std::isnan(w) ? std::isnan(g) : w == g) continue;
        double sum = 0;
        for (std::int64_t k = 0; k < o.K; ++k) sum += std::fabs(a.at(i, k) * b.at(k, j));
        const double place = result == dtype::bf16 ? std::fmax(std::ldexp(1.0, std::ilogb(w) - 7), 0x1p-133) : 0;
        ASSERT_TRUE(std::fabs(g - w) <= place + 0x1p-20 * sum + 0x1p-149 * double(o.K))
            << "C[" << i << ", " << j << "]: " << g << ", widened " << w;
      }
    for (const int threads : {2, 3, 5}) {
      const auto again = c.run<pairs>(&pool_of(threads));
      ASSERT_EQ(given[0].bytes, again[0].bytes) << threads << " threads";
    }
  }
}
template <class F> void all_orders(std::int64_t M, std::int64_t N, std::int64_t K, const F& element) {
  for (int order = 0; order < 4; ++order)
    for (const int gap : {0, 3}) expect_contract({M, N, K, order, gap}, element);
}
double random(int operand, std::int64_t i, std::int64_t k) {
  return 2 * double(philox(3, std::uint64_t(i * 65536 + k), std::uint32_t(operand), 7)[0]) * 0x1p-32 - 1;
}

TEST(bf16_product, sizes_around_tiles_panels_pairs_and_blocks_keep_the_contract) {
  for (auto [M, N, K] :
       {std::array{5, 16, 1}, {12, 32, 2}, {13, 33, 3}, {11, 47, 31}, {24, 31, 33}, {25, 65, 767}, {37, 15, 769}, {6, 100, 1537}})
    all_orders(M, N, K, random);
}
TEST(bf16_product, shapes_of_a_transformer_keep_the_contract) {
  for (auto [M, N, K] : {std::array{256, 96, 768}, {96, 256, 768}, {64, 50, 128}, {50, 768, 64}, {300, 64, 300}})
    for (int order = 0; order < 3; ++order) expect_contract({M, N, K, order}, random);
}
TEST(bf16_product, sums_that_wait_for_chunks_keep_the_contract) {
  for (int order = 0; order < 4; ++order) expect_contract({20, 40, 7681, order}, random);
}

/// Subnormal numbers that others make large, products and sums below 2^-126, rows of zeros and infinities.
TEST(bf16_product, subnormal_numbers_are_not_lost) {
  const auto large = [](double tiny, double other) {
    return [=](int operand, std::int64_t i, std::int64_t k) { return random(operand, i, k) * (operand == 0 ? tiny : other); };
  };
  for (const auto [M, N, K] : {std::array{30, 70, 50}, {13, 33, 7}, {70, 30, 800}}) {
    all_orders(M, N, K, large(0x1p-128, 0x1p100));
    all_orders(M, N, K, large(0x1p100, 0x1p-128));
    all_orders(M, N, K, large(0x1p-64, 0x1p-64));
    all_orders(M, N, K, large(0x1p-70, 0x1p-70));
    all_orders(M, N, K, large(0x1p-120, 1));
    // Neighbours of other sizes in the same tile, in the same sum, and zeros.
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random(operand, i, k) * (i % 5 == 0 ? 0x1p-130 : i % 5 == 1 ? 0x1p-60 : i % 5 == 2 ? 0 : i % 5 == 3 ? 0x1p60 : 1);
    });
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random(operand, i, k) * (k % 3 == 0 ? 0x1p-130 : k % 3 == 1 ? 0x1p-70 : 0);
    });
  }
}
TEST(bf16_product, one_subnormal_number_among_others_counts) {
  all_orders(40, 40, 90, [](int operand, std::int64_t i, std::int64_t k) {
    if (operand == 0) return i == 17 && k == 41 ? 0x1p-133 : 0.0;
    return i == 33 ? 0x1p120 : random(1, i, k);
  });
}
TEST(bf16_product, infinities_and_nan_stay) {
  all_orders(26, 34, 40, [](int operand, std::int64_t i, std::int64_t k) {
    if (i == 3 && k == 8) return double(INFINITY);
    if (i == 12 && k == 9) return double(NAN);
    return operand == 0 && i == 5 ? 0.0 : random(operand, i, k);
  });
}
}  // namespace
