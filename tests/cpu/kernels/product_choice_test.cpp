/// Which algorithm computes a product on the processor, whether all give the same result, and what the report says. Speeds are no part of it.
#include <isotope/kernels/cpu/native/matmul.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "call.hpp"

namespace product_choice_test {
using namespace isotope;
using namespace isotope_test;
using cpu::native::product_variant;
using matmul = cpu::kernel<op::matmul, precision::f32, kernels::native>;

cpu::thread_pool& pool() {
  static cpu::thread_pool two(2);
  return two;
}
/// A product of f32 on two threads, whose right operand (N, K) is transposed if `transposed`.
struct product {
  array a, b, y;
  std::vector<std::byte> scratch;
  attributes attr;
  std::array<cpu::view, 2> in;

  product(std::int64_t M, std::int64_t N, std::int64_t K, bool transposed, bool batch_invariant = false)
      : a(array::random({M, K}, dtype::f32, 1)),
        b(array::random(transposed ? shape{N, K} : shape{K, N}, dtype::f32, 2)),
        y({M, N}, dtype::f32),
        attr(op::matmul::constants{.operands = 2, .batch_invariant = batch_invariant}),
        in{a.v, transposed ? b.transposed() : b.v} {
    const shape in_dims[] = {in[0].dims, in[1].dims}, out_dims[] = {y.v.dims};
    scratch.resize(std::size_t(matmul::scratch({in_dims, out_dims, &attr})) + 64);
  }
  cpu::launch launch(kernel_choices* choices) {
    cpu::launch l;
    l.in = in;
    l.out = {&y.v, 1};
    l.attr = &attr;
    l.scratch = scratch.data();
    l.pool = &pool();
    l.choices = choices;
    return l;
  }
  /// The choice, and what was said of each variant.
  std::string choice(kernel_choices& said) {
    said.all.clear();
    matmul::consider(launch(&said));
    for (const auto& v : said.all)
      if (v.chosen) return v.name;
    return "none";
  }
  std::vector<double> run(const std::string& wanted) {
    kernel_choices asked{.wanted = wanted};
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, -7);
    matmul::run(launch(&asked));
    std::vector<double> r;
    for (std::int64_t i = 0; i < y.count(); ++i) r.push_back(y.at(i));
    return r;
  }
};

/// As documented: gemv up to four rows; of transposed matrices the operand that costs less is packed; few rows times rows in one piece go by columns.
std::string documented(std::int64_t M, std::int64_t N, std::int64_t K, bool transposed, bool batch_invariant) {
  const bool columns_lie = transposed && K != 1 && N != 1;
  if (M <= 4 && N >= cpu::native::lanes && !batch_invariant) return "gemv in tasks of 64 KB";
  if (columns_lie) return M * (K + 2 * N) < N * K ? "gemm, left operand packed" : "gemm, right operand packed";
  return M < N && M <= 2 * cpu::native::blocking::block_rows ? "gemm by columns" : "gemm, right operand packed";
}
TEST(cpu_product_choice, is_the_documented_one) {
  for (const std::int64_t M : {1, 2, 4, 5, 16, 100, 384, 385, 528, 529, 1024})
    for (const std::int64_t N : {1, 7, 16, 65, 768})
      for (const std::int64_t K : {1, 2, 33, 400})
        for (const bool transposed : {false, true})
          for (const bool batch_invariant : {false, true}) {
            product p(M, N, K, transposed, batch_invariant);
            kernel_choices said;
            EXPECT_EQ(p.choice(said), documented(M, N, K, transposed, batch_invariant)) << M << ' ' << N << ' ' << K << ' ' << transposed;
          }
}
/// With batch_invariant a row has the same bits however many there are, so gemv, which adds up in another order, is no candidate, not even if it is asked for.
TEST(cpu_product_choice, of_batch_invariant_products_is_no_gemv) {
  product p(1, 64, 400, true, true);
  kernel_choices asked{.wanted = "gemv"};
  EXPECT_EQ(p.choice(asked), "gemm, left operand packed");
  EXPECT_EQ(asked.all.at(0).unfit, "it adds up in another order, and rows are to have the same bits however many there are");
}
TEST(cpu_product_choice, every_variant_that_fits_gives_the_product) {
  for (const std::int64_t M : {1, 3, 17, 60})
    for (const bool transposed : {false, true}) {
      product p(M, 130, 401, transposed);
      kernel_choices said;
      const std::string usual = p.choice(said);
      const std::vector<double> expected = p.run("");
      int fit = 0;
      for (const auto& v : std::vector(said.all)) {
        if (!v.unfit.empty()) continue;
        ++fit;
        kernel_choices asked{.wanted = v.name};
        ASSERT_EQ(p.choice(asked), v.name);
        const auto y = p.run(v.name);
        const bool same_order = v.name.starts_with("gemv") == usual.starts_with("gemv");
        for (std::size_t i = 0; i < y.size(); ++i) {
          if (same_order) ASSERT_EQ(y[i], expected[i]) << v.name << ' ' << M << ' ' << i;
          // Two sums of 401 products of at most 1, each with at most 2^-24 401 per unit of their size.
          else ASSERT_NEAR(y[i], expected[i], 2 * 401 * 401 * 0x1p-24) << v.name;
        }
      }
      EXPECT_GE(fit, 2);
    }
}

}  // namespace product_choice_test
