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
using matmul = cpu::kernel<op::matmul, precision::f32, kernels::native>;

cpu::thread_pool& pool() {
  static cpu::thread_pool two(2);
  return two;
}
/// Devices that choose differently: with threads that pack for themselves or for each other, that multiply or move words slowly.
std::vector<cpu::thread_pool*> pools() {
  static cpu::thread_pool one(1), multiplies(2), moves(6);
  multiplies.rates = {.multiply = 1e7, .copy = 1e12, .barrier = 1e-9};
  moves.rates = {.multiply = 1e13, .copy = 1e7, .barrier = 1e-4};
  return {&one, &multiplies, &moves};
}
/// A product of f32, whose right operand (N, K) is transposed if `transposed`.
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
  cpu::launch launch(kernel_choices* choices, cpu::thread_pool& on) {
    cpu::launch l;
    l.in = in;
    l.out = {&y.v, 1};
    l.attr = &attr;
    l.scratch = scratch.data();
    l.pool = &on;
    l.choices = choices;
    return l;
  }
  /// The choice, and what was said of each variant.
  std::string choice(kernel_choices& said, cpu::thread_pool& on = pool()) {
    said.all.clear();
    matmul::consider(launch(&said, on));
    for (const auto& v : said.all)
      if (v.chosen) return v.name;
    return "none";
  }
  std::vector<double> run(const std::string& wanted, cpu::thread_pool& on = pool()) {
    kernel_choices asked{.wanted = wanted};
    for (std::int64_t i = 0; i < y.count(); ++i) y.set(i, -7);
    matmul::run(launch(wanted.empty() ? nullptr : &asked, on));
    std::vector<double> r;
    for (std::int64_t i = 0; i < y.count(); ++i) r.push_back(y.at(i));
    return r;
  }
};

/// The order in which an element's terms are added follows from sizes and the policy alone: gemv up to four rows, else a gemm. Among variants of that order, threads and
/// their rates choose.
TEST(cpu_product_choice, of_an_order_of_sums_follows_from_sizes_alone) {
  for (const std::int64_t M : {1, 4, 5, 100})
    for (const std::int64_t N : {1, 7, 16, 65})
      for (const std::int64_t K : {1, 200})
        for (const bool transposed : {false, true})
          for (const bool batch_invariant : {false, true}) {
            product p(M, N, K, transposed, batch_invariant);
            const bool gemv = M <= 4 && N >= cpu::native::lanes && !batch_invariant;
            for (cpu::thread_pool* on : pools()) {
              kernel_choices said;
              EXPECT_EQ(p.choice(said, *on).starts_with(gemv ? "gemv" : "gemm"), true) << M << ' ' << N << ' ' << K << ' ' << transposed;
              for (const auto& v : said.all)
                EXPECT_TRUE(!v.unfit.empty() || v.name.starts_with(gemv ? "gemv" : "gemm")) << v.name << " may be timed and remembered";
            }
          }
}
/// As measured on all numbers of threads (bench/CPU.md): the operand is packed that costs less.
TEST(cpu_product_choice, follows_from_threads_and_sizes) {
  product wide(64, 1000, 300, true), tall(2520, 72, 128, true), large(300, 384, 400, true);
  for (const int threads : {1, 4, 16}) {
    cpu::thread_pool on(threads);
    kernel_choices said;
    EXPECT_EQ(wide.choice(said, on), "gemm, left operand packed") << threads;
    EXPECT_NE(tall.choice(said, on), "gemm, left operand packed") << threads;  // tasks or all threads pack the right one
    if (threads <= 4) { EXPECT_EQ(large.choice(said, on), "gemm by panels") << threads; }
  }
}
TEST(cpu_product_choice, changes_no_bit) {
  for (const std::int64_t M : {3, 40})
    for (const bool transposed : {false, true}) {
      product p(M, 200, 401, transposed);
      const auto expected = p.run("");
      for (cpu::thread_pool* on : pools()) EXPECT_EQ(p.run("", *on), expected) << M << ' ' << on->size();
    }
}
/// With batch_invariant a row has the same bits however many there are, so gemv, which adds up in another order, is no candidate, not even if it is asked for.
TEST(cpu_product_choice, of_batch_invariant_products_is_no_gemv) {
  product p(1, 64, 400, true, true);
  kernel_choices asked{.wanted = "gemv"};
  EXPECT_TRUE(p.choice(asked).starts_with("gemm"));
  EXPECT_EQ(asked.all.at(0).unfit, "it adds up in another order, and rows are to have the same bits however many there are");
}
TEST(cpu_product_choice, every_variant_that_fits_gives_the_product) {
  for (const std::int64_t M : {1, 3, 17, 60})
    for (const bool transposed : {false, true}) {
      product p(M, 130, 401, transposed);
      kernel_choices said{.wanted = "none of this name", .remembered = {}, .all = {}};  // asks by name: then those of other orders fit, too
      const std::string usual = p.choice(said);
      const std::vector<double> expected = p.run(usual);
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
