// labels: matrices
/// Products of f32 activations with f16 weights on matrix units.
#include <cstdio>
#include <isotope/backend/oscillation.hpp>

#include "matrix_product.hpp"

using namespace isotope;
using namespace isotope::vulkan_test;

namespace matmul_narrowed_test {

using native = vulkan::kernel<op::matmul, precision::f32, kernels::native>;

class vulkan_weights_of_f16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (here().matrix(dtype::f16) == nullptr) GTEST_SKIP() << "the device has no f16 matrices";
    if (!vulkan::shaders::matmul_khr_f16_plain.there()) GTEST_SKIP() << "the shader compiler of this build knows no matrices";
  }
};
/// Activations that are f16 numbers in f32, so that rounding them changes nothing and `right` knows the result.
matrix_product exact(std::int64_t M, std::int64_t K, std::int64_t N, int order, std::int64_t gap = 0) {
  auto p = two_matrices(M, K, N, order, dtype::f16, dtype::f32, gap);
  p.a.type = dtype::f32;
  return p;
}
host product(const matrix_product& p, const vulkan::device_limits& f = here()) {
  const auto r = run<native>(p, f);
  EXPECT_TRUE(ran(r, "matmul_khr_f16")) << r.dispatches.at(0).reason;
  return r.y;
}
TEST_F(vulkan_weights_of_f16, whole_and_ragged_tiles_in_every_memory_order) {
  const std::int64_t sizes[][3] = {{64, 64, 64}, {65, 33, 63}, {9, 8, 1000}};
  for (const auto& [M, K, N] : sizes)
    for (int order = 0; order < 4; ++order)
      for (const std::int64_t gap : {0, 3}) {
        const auto p = exact(M, K, N, order, gap);
        EXPECT_TRUE(right(p, product(p))) << described(p, order) << " gap " << gap;
      }
}
TEST_F(vulkan_weights_of_f16, parts_of_k_and_batches_keep_the_rounded_activations_apart_from_their_sums) {
  vulkan::device_limits f = here();
  f.switches.split_k = 3;
  auto p = exact(70, 805, 72, 2);
  p.into = op_test::random(p.dims(), dtype::f32, 5);
  p.alpha = 0.5;
  EXPECT_TRUE(right(p, product(p, f)));
  for (const auto& [a, b] : batch_axes) {
    auto q = batched(a, b, 10, dtype::f16, false);
    q.a.type = q.type = dtype::f32;
    EXPECT_TRUE(right(q, product(q))) << described(q);
  }
}
TEST_F(vulkan_weights_of_f16, an_epilogue_gives_the_bits_of_separate_ops) { compare_fused<native>(exact(40, 48, 64, 2), here()); }

enum class shape_of { gentle, random, alternating };
/// Smooth activations (1 and 1 % more or less, no f16 numbers) and weights of a kind, N lines of K.
matrix_product smooth(shape_of kind, std::int64_t M, std::int64_t K, std::int64_t N) {
  matrix_product p;
  p.a = op_test::random({M, K}, dtype::f32, 1, 0.99, 1.01);
  const host size = op_test::random({N, K}, dtype::f32, 2, 0.5, 1), any = op_test::random({N, K}, dtype::f32, 3, -1, 1);
  p.b = op_test::laid_out(op_test::full({K, N}, dtype::f16, 0), {1, 0});
  for (std::int64_t n = 0; n < N; ++n)
    for (std::int64_t k = 0; k < K; ++k) {
      const double x = kind == shape_of::random ? any[n * K + k] : (kind == shape_of::alternating && k % 2 == 1 ? -1 : 1) * size[n * K + k];
      p.b.at[std::size_t(k * N + n)] = op_test::rounded(dtype::f16, x);
    }
  std::vector<float> lines(std::size_t(N * K));
  for (std::int64_t i = 0; i < N * K; ++i) lines[std::size_t(i)] = float(p.b[i % K * N + i / K]);
  p.oscillation = float(oscillation(lines, {N, K, K, 1}));
  return p;
}
struct errors {
  double rounded = 0, wide = 0;  // largest, by the largest result: against f64 sums of f16 activations, and of the f32 ones
};
errors errors_of(const matrix_product& p, const host& y) {
  const std::int64_t M = y.dims[0], N = y.dims[1], K = p.a.dims[1];
  double largest = 0;
  errors e;
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double rounded = 0, wide = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        rounded += op_test::rounded(dtype::f16, p.a[m * K + k]) * p.b[k * N + n];
        wide += p.a[m * K + k] * p.b[k * N + n];
      }
      largest = std::max(largest, std::fabs(wide));
      e.rounded = std::max(e.rounded, std::fabs(y[m * N + n] - rounded));
      e.wide = std::max(e.wide, std::fabs(y[m * N + n] - wide));
    }
  return {e.rounded / largest, e.wide / largest};
}
std::string in_words(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", x);
  return text;
}
// Sums of K = 24 products of f16 numbers are exact but for f32 additions: 24 x 2^-24 x sum |a b|, where the largest sum of alternating weights is at least
// 1/24 of that: below 4e-5, far from 1e-3. Against f32 activations, each is rounded by 2^-12 (below 1) or 2^-11: as much of a gentle sum at most.
TEST_F(vulkan_weights_of_f16, are_right_at_widths_of_models_for_gentle_random_and_alternating_weights) {
  for (const std::int64_t N : {768, 769, 1024, 3072, 50257}) {
    double wide_of_gentle = 0;
    for (const auto& [kind, name] :
         {std::pair{shape_of::gentle, "gentle"}, {shape_of::random, "random"}, {shape_of::alternating, "alternating"}}) {
      const auto p = smooth(kind, 10, 24, N);
      vulkan::device_limits f = here();
      f.switches.no_auto_wide = true;
      const auto e = errors_of(p, product(p, f));
      const std::string label = std::string(name) + "_" + std::to_string(N);
      RecordProperty(label + "_against_f16", in_words(e.rounded));
      RecordProperty(label + "_against_f32", in_words(e.wide));
      EXPECT_TRUE(e.rounded <= 1e-3) << label << ' ' << e.rounded;
      if (kind == shape_of::gentle) wide_of_gentle = e.wide;
      if (kind == shape_of::gentle) { EXPECT_TRUE(e.wide <= 0x1p-11 * 1.1) << label << ' ' << e.wide; }
      if (kind == shape_of::alternating) { EXPECT_GT(e.wide, wide_of_gentle) << "what the score is for"; }
    }
  }
}
TEST_F(vulkan_weights_of_f16, stay_with_f32_activations_where_they_alternate) {
  for (const auto kind : {shape_of::gentle, shape_of::random, shape_of::alternating}) {
    const auto p = smooth(kind, 10, 24, 128);
    const auto r = run<native>(p, here());
    EXPECT_EQ(ran(r, "matmul_khr_f16"), kind != shape_of::alternating) << p.oscillation;
    if (kind != shape_of::alternating) continue;
    EXPECT_EQ(r.dispatches.at(0).set, "portable");
    EXPECT_EQ(r.dispatches.at(0).reason, "activations stay f32: the weights oscillate");
    EXPECT_TRUE(right(p, r.y));
  }
}

}  // namespace matmul_narrowed_test
