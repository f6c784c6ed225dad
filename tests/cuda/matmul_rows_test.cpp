/// Products with few rows, whose weights are wide enough for the kernels that read them once: every number of rows, aligned lines and
/// others, every way to finish sums. Which kernel runs is checked, too.
#include <isotope/kernels/cuda/native/matmul_rows_mma.hpp>
#include <isotope/kernels/cuda/portable/matmul_rows.hpp>

#include "../op/harness.hpp"

namespace isotope::op_test {
namespace matmul_rows_test {

class matmul_rows : public op_test {};
INSTANTIATE_TEST_SUITE_P(, matmul_rows, everywhere_with_native(), target_name);

op::matmul::constants times(double alpha = 1, double beta = 0, format_number type = {}) {
  return {.format = type, .alpha = alpha, .beta = beta};
}
/// Weights (K, N) whose lines run along K, `gap` elements apart.
host weights(std::int64_t K, std::int64_t N, dtype t, std::int64_t gap = 0) { return laid_out(random({K, N}, t, 2), {1, 0}, gap); }
std::vector<double> expected(const host& x, const host& w, double alpha = 1, double beta = 0, const host* c = nullptr) {
  const std::int64_t M = x.dims[-2], K = x.dims[-1], N = w.dims[-1];
  std::vector<double> y(std::size_t(M * N));
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t n = 0; n < N; ++n) y[std::size_t(m * N + n)] += alpha * x.at[std::size_t(m * K + k)] * w.at[std::size_t(k * N + n)];
  for (std::size_t i = 0; beta != 0 && i < y.size(); ++i) y[i] += beta * c->at[i];
  return y;
}

TEST_P(matmul_rows, every_number_of_rows_matches_the_definition) {
  const auto& here = *this;
  // K and N: whole chunks and steps, a last chunk that is not whole, odd numbers, many columns, few columns, and so few that blocks have
  // parts of K
  const std::int64_t sizes[][2] = {{768, 96},  {300, 224}, {263, 257}, {256, 700}, {1024, 300},
                                   {1600, 48}, {4096, 24}, {8192, 8},  {16392, 4}};
  for (const auto& [K, N] : sizes) {
    const host w = weights(K, N, here.type);
    for (std::int64_t M = 1; M <= 17; M += K < 1000 ? 1 : 5) {
      const host x = random({M, K}, here.type, std::uint64_t(M));
      EXPECT_TRUE(near(here.run<op::matmul>({x, w}, times()).at(0), expected(x, w), here.roundings(double(K)) * 4 * double(K)))
          << M << ' ' << K << ' ' << N;
    }
  }
}
TEST_P(matmul_rows, up_to_64_rows_match_the_definition) {
  const auto& here = *this;
  // K and N: one turn and several, parts of K that some warps do not have, columns behind the last whole tile, rows that are not aligned
  const std::int64_t sizes[][2] = {{768, 96}, {96, 56}, {3072, 24}, {800, 32}, {64, 50}};
  for (const auto& [K, N] : sizes) {
    const host w = weights(K, N, here.type);
    for (const std::int64_t M : {17, 33, 64}) {
      const host x = random({M, K}, here.type, std::uint64_t(M));
      EXPECT_TRUE(near(here.run<op::matmul>({x, w}, times()).at(0), expected(x, w), here.roundings(double(K)) * 4 * double(K)))
          << M << ' ' << K << ' ' << N;
    }
  }
}
TEST_P(matmul_rows, lines_may_start_at_any_address_and_lie_apart) {
  const auto& here = *this;
  constexpr std::int64_t K = 272, N = 250;
  for (const std::int64_t M : {1, 3, 8, 13})
    for (const std::int64_t gap : {0, 1, 8}) {
      const host x = laid_out(random({M, K}, here.type, 1), {0, 1}, 8 - gap), w = weights(K, N, here.type, gap);
      EXPECT_TRUE(near(here.run<op::matmul>({x, w}, times()).at(0), expected(x, w), here.roundings(double(K)) * 4 * double(K)))
          << M << " gap " << gap;
    }
}
TEST_P(matmul_rows, weights_of_16_bits_meet_activations_of_the_program) {
  const auto& here = *this;
  constexpr std::int64_t K = 520, N = 130;
  for (const std::int64_t M : {1, 2, 4, 5, 16})
    for (const dtype half : {dtype::f16, dtype::bf16}) {
      host x = random({M, K}, dtype::f16, 1);
      x.type = dtype::f32;
      const host w = weights(K, N, half);
      EXPECT_TRUE(near(here.run<op::matmul>({x, w}, times()).at(0), expected(x, w), here.roundings(double(K)) * 4 * double(K))) << M;
    }
}
TEST_P(matmul_rows, results_are_scaled_and_added_to) {
  const auto& here = *this;
  constexpr std::int64_t K = 288, N = 232;
  for (const std::int64_t M : {1, 4, 7, 16}) {
    const host x = random({M, K}, here.type, 1), w = weights(K, N, here.type), c = random({M, N}, here.type, 3),
               into = random({M, N}, here.accum, 4);
    const double bound = here.roundings(double(K) + 2) * (4 * double(K) + 4);
    EXPECT_TRUE(near(here.run<op::matmul>({x, w, c}, times(0.5, -2)).at(0), expected(x, w, 0.5, -2, &c), bound)) << M;
    settings s;
    s.accumulate = 1;
    s.into = {into};
    const auto r = here.run<op::matmul>({x, w}, times(0.5, 0, here.accum), s);
    EXPECT_TRUE(near(r.at(0), expected(x, w, 0.5, 1, &into), bound + double(K) * roundoff(here.accum))) << M;
  }
}
TEST_P(matmul_rows, an_epilogue_gives_the_bits_of_the_ops_it_replaces) {
  const auto& here = *this;
  const dtype t = here.type;
  constexpr std::int64_t K = 264;
  for (const std::int64_t N : {256, 251})  // a chain, and the interpreter
    for (const std::int64_t M : {1, 2, 6, 16}) {
      const host x = random({M, K}, t, 1), w = weights(K, N, t), bias = random({N}, t, 3), residual = random({M, N}, t, 4);
      settings fused;
      fused.body = {here.step<op::add>({isotope::gemm_result, 2}, t), here.step<op::gelu_tanh>({8}, t, 1),
                    here.step<op::add>({9, 3}, t, 0)};
      fused.body_outputs = {t, t};
      auto a = times();
      a.operands = 2;
      const auto y = here.run<op::matmul>({x, w, bias, residual}, a, fused);
      const auto plain = here.run<op::matmul>({x, w}, times()), sum = here.run<op::add>({plain[0], bias}),
                 gate = here.run<op::gelu_tanh>({sum[0]}), last = here.run<op::add>({gate[0], residual});
      ASSERT_EQ(y.size(), 2u);
      EXPECT_TRUE(same(y[0], last[0].at)) << M << ' ' << N;
      EXPECT_TRUE(same(y[1], gate[0].at)) << M << ' ' << N;
    }
}
TEST_P(matmul_rows, epilogues_of_up_to_64_rows_give_the_bits_of_the_ops_they_replace) {
  const auto& here = *this;
  const dtype t = here.type;
  for (const auto& [M, K, N] : {std::array<std::int64_t, 3>{17, 96, 56}, {50, 96, 88}, {33, 800, 24}}) {
    const host x = random({M, K}, t, 1), w = weights(K, N, t), bias = random({N}, t, 3), residual = random({M, N}, t, 4);
    const auto plain = here.run<op::matmul>({x, w}, times()), sum = here.run<op::add>({plain[0], bias});
    auto a = times();
    a.operands = 2;
    const auto run = [&](const std::vector<host>& in, const std::vector<body_step>& body) {
      settings fused;
      fused.body = body;
      fused.body_outputs = {t};
      return here.run<op::matmul>(in, a, fused).at(0);
    };
    EXPECT_TRUE(same(run({x, w, bias}, {here.step<op::add>({isotope::gemm_result, 2}, t, 0)}), sum[0].at)) << M;
    EXPECT_TRUE(
        same(run({x, w, residual}, {here.step<op::add>({isotope::gemm_result, 2}, t, 0)}), here.run<op::add>({plain[0], residual})[0].at))
        << M;
    EXPECT_TRUE(same(run({x, w, bias, residual}, {here.step<op::add>({isotope::gemm_result, 2}, t), here.step<op::add>({8, 3}, t, 0)}),
                     here.run<op::add>({sum[0], residual})[0].at))
        << M;
    EXPECT_TRUE(same(run({x, w, bias}, {here.step<op::add>({isotope::gemm_result, 2}, t), here.step<op::gelu_tanh>({8}, t, 0)}),
                     here.run<op::gelu_tanh>({sum[0]})[0].at))
        << M;
  }
}
TEST_P(matmul_rows, batches_have_weights_of_their_own) {
  const auto& here = *this;
  constexpr std::int64_t K = 256, N = 264;
  const host x = random({2, 5, K}, here.type, 1), w = laid_out(random({2, K, N}, here.type, 2), {0, 2, 1});
  std::vector<double> wanted;
  for (std::int64_t p = 0; p < 2; ++p) {
    const host a({5, K}, here.type, {x.at.begin() + p * 5 * K, x.at.begin() + (p + 1) * 5 * K}),
        b({K, N}, here.type, {w.at.begin() + p * K * N, w.at.begin() + (p + 1) * K * N});
    for (const double v : expected(a, b)) wanted.push_back(v);
  }
  EXPECT_TRUE(near(here.run<op::matmul>({x, w}, times()).at(0), wanted, here.roundings(double(K)) * 4 * double(K)));
}

/// The kernel that a product of x (M, K) with weights (N, K) runs, on a device that has general tensor cores.
template <class Set>
std::string kernel_of(std::int64_t M, std::int64_t N, std::int64_t K, dtype left, dtype right, bool tensor_cores = true) {
  struct no_store final : cuda::constant_store, cuda::code_store {
    std::uint64_t keep(std::span<const std::byte>) override { return 0; }
    const cuda::device_code* keep(std::string_view, std::string) override { return nullptr; }
  } store;
  const auto matrix = [](std::uint64_t at, std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, dtype t) {
    cuda::view v{at, rows * columns * size_of(t), {rows, columns}, {}, t};
    v.strides[0] = row;
    v.strides[1] = column;
    return v;
  };
  const std::vector<cuda::view> in{matrix(1u << 30, M, K, K, 1, left), matrix(1u << 31, K, N, 1, K, right)},
      out{matrix(1u << 20, M, N, N, 1, left)};
  const attributes attr = op::matmul::constants{.format = left, .operands = 2};
  cuda::device_limits limits;
  limits.shared_bytes = 160 << 10;
  limits.switches.no_matrix_units = !tensor_cores;
  cuda::launch l;
  l.in = in;
  l.out = out;
  l.attr = &attr;
  l.device = &limits;
  cuda::recording r(store, store);
  cuda::kernel<op::matmul, precision::bf16, Set>::record(l, r);
  return r.dispatches.empty() ? "" : std::string(r.dispatches[0].function);
}
TEST(matmul_rows_choice, follows_rows_formats_and_units) {
  constexpr auto f32 = dtype::f32, bf16 = dtype::bf16, f16 = dtype::f16;
  EXPECT_EQ((kernel_of<kernels::native>(1, 768, 768, bf16, bf16)), "matmul_rows_mma_short_8");
  EXPECT_EQ((kernel_of<kernels::native>(9, 768, 3072, bf16, bf16)), "matmul_rows_mma_8_16_deep");
  EXPECT_EQ((kernel_of<kernels::native>(16, 50304, 768, bf16, bf16)), "matmul_rows_mma_short_16");
  EXPECT_EQ((kernel_of<kernels::native>(16, 50304, 1024, bf16, bf16)), "matmul_rows_mma_long_16");
  EXPECT_EQ((kernel_of<kernels::native>(8, 50304, 768, bf16, bf16)), "matmul_rows_mma_16_8");
  EXPECT_EQ((kernel_of<kernels::native>(16, 3072, 4096, bf16, bf16)), "matmul_rows_mma_16_16");
  EXPECT_EQ((kernel_of<kernels::native>(4, 1600, 1600, bf16, bf16)), "matmul_rows_mma_8_8");
  EXPECT_EQ((kernel_of<kernels::native>(64, 2304, 768, bf16, bf16)), "matmul_rows_tile_32x48");
  EXPECT_EQ((kernel_of<kernels::native>(64, 768, 768, bf16, bf16)), "matmul_rows_tile_16x48");
  EXPECT_EQ((kernel_of<kernels::native>(64, 768, 3072, bf16, bf16)), "matmul_rows_tile_deep_32x16");
  EXPECT_EQ((kernel_of<kernels::native>(17, 768, 3072, bf16, bf16)), "matmul_rows_tile_deep_16x16");
  EXPECT_FALSE(kernel_of<kernels::native>(64, 50304, 768, bf16, bf16).starts_with("matmul_rows")) << "blocks that wait";
  EXPECT_FALSE(kernel_of<kernels::native>(65, 768, 768, bf16, bf16).starts_with("matmul_rows"));
  EXPECT_EQ((kernel_of<kernels::native>(1, 40, 50, bf16, bf16)), "matmul_rows_bf16_1") << "few weights";
  EXPECT_EQ((kernel_of<kernels::native>(16, 768, 768, bf16, bf16, false)), "matmul_rows_bf16_16");
  EXPECT_EQ((kernel_of<kernels::native>(6, 768, 768, f32, bf16)), "matmul_rows_f32_bf16_8");
  EXPECT_EQ((kernel_of<kernels::native>(6, 768, 768, f32, f32)), "matmul_rows_f32_8");
  EXPECT_EQ((kernel_of<kernels::portable>(9, 768, 768, bf16, bf16)), "matmul_rows_bf16_16");
  EXPECT_EQ((kernel_of<kernels::portable>(3, 40, 50, f32, f32)), "matmul_rows_f32_4");
  EXPECT_EQ((kernel_of<kernels::portable>(768, 2, 768, f32, f32)), "matmul_rows_f32_2") << "few columns";
  EXPECT_FALSE(kernel_of<kernels::portable>(5, 40, 50, f32, f32).starts_with("matmul_rows")) << "few weights";
  EXPECT_FALSE(kernel_of<kernels::portable>(17, 768, 768, f32, f32).starts_with("matmul_rows"));
  EXPECT_EQ((kernel_of<kernels::portable>(2, 768, 768, f32, f16)), "matmul_rows_f32_f16_2");
  EXPECT_FALSE(kernel_of<kernels::portable>(2, 768, 768, f16, f16).starts_with("matmul_rows"));
}

}  // namespace matmul_rows_test
}  // namespace isotope::op_test
