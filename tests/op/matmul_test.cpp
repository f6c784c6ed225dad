// labels: subgroups
#include "harness.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/plan/dynamic.hpp>

namespace isotope::op_test {
namespace matmul_test {

class matmul : public op_test {};
INSTANTIATE_TEST_SUITE_P(, matmul, everywhere_with_native(), target_name);

op::matmul::constants times(double alpha = 1, double beta = 0, format_number type = {}) {
  return {.format = type, .alpha = alpha, .beta = beta};
}
/// alpha a b + beta c for a (batch, M, K), b (batch, K, N), c (batch, M, N); a batch of 1 broadcasts.
std::vector<double> expected(const host& a, const host& b, double alpha = 1, double beta = 0, const host* c = nullptr) {
  const auto M = a.dims[-2], K = a.dims[-1], N = b.dims[-1];
  const auto batch_a = M * K == 0 ? 1 : a.dims.count() / (M * K), batch_b = K * N == 0 ? 1 : b.dims.count() / (K * N);
  const auto batch = std::max(batch_a, batch_b);
  std::vector<double> y;
  for (std::int64_t p = 0; p < batch; ++p)
    for (std::int64_t m = 0; m < M; ++m)
      for (std::int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k)
          sum += a[(batch_a == 1 ? 0 : p) * M * K + m * K + k] * b[(batch_b == 1 ? 0 : p) * K * N + k * N + n];
        y.push_back(alpha * sum + (beta == 0 ? 0 : beta * (*c)[std::int64_t(y.size())]));
      }
  return y;
}

TEST_P(matmul, every_memory_order_matches_the_definition_at_awkward_sizes) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {7, 1, 4}, {1, 13, 1}, {17, 33, 9}, {65, 31, 67}, {5, 129, 3}, {40, 904, 40}};
  for (const auto& [M, K, N] : sizes)
    for (int order = 0; order < 4; ++order) {
      host a = random({M, K}, here.type, 1), b = random({K, N}, here.type, 2);
      if (order & 1) a = laid_out(a, {1, 0}, 3);
      if (order & 2) b = laid_out(b, {1, 0}, 1);
      // a sum of K products of at most 2 x 2, with one rounding per addition
      EXPECT_TRUE(near(here.run<op::matmul>({a, b}, times()).at(0), expected(a, b), here.roundings(double(K)) * 4 * double(K)))
          << M << ' ' << K << ' ' << N << " order " << order;
    }
}
TEST_P(matmul, one_product_with_parts_side_by_side_gives_the_bits_of_a_product_with_each_part) {
  const auto& here = *this;
  // A projection to queries, keys and values is one matmul. Here the width of its parts is a multiple of every tile, and K is so small that no device splits it,
  // or chooses a tile whose threads share it for a part alone.
  const std::int64_t sizes[][3] = {{64, 16, 128}, {130, 16, 256}, {1, 32, 128}};
  for (const auto& [M, K, N] : sizes) {
    const host x = random({M, K}, here.type, 1), w = random({K, 3 * N}, here.type, 2);
    const auto all = here.run<op::matmul>({x, w}, times()).at(0);
    for (std::int64_t part = 0; part < 3; ++part) {
      host one = full({K, N}, here.type, 0);
      std::vector<double> wanted;
      for (std::int64_t i = 0; i < K * N; ++i) one.at[std::size_t(i)] = w[i / N * 3 * N + part * N + i % N];
      for (std::int64_t i = 0; i < M * N; ++i) wanted.push_back(all[i / N * 3 * N + part * N + i % N]);
      EXPECT_TRUE(same(here.run<op::matmul>({x, one}, times()).at(0), wanted)) << M << ' ' << K << ' ' << N << " part " << part;
    }
  }
}
TEST_P(matmul, weights_of_16_bits_meet_activations_of_the_program) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{1, 1, 1}, {1, 129, 40}, {3, 70, 9}, {17, 33, 9}, {65, 31, 67}, {20, 64, 96}};
  for (const auto& [M, K, N] : sizes)
    for (int order = 0; order < 2; ++order)
      for (const dtype half : {dtype::f16, dtype::bf16}) {
        host a = random({M, K}, dtype::f16, 1);  // so that rounding activations to f16 changes nothing
        a.type = dtype::f32;
        const host b = random({K, N}, half, 2);
        const auto y = here.run<op::matmul>({a, order == 1 ? laid_out(b, {1, 0}, 1) : b}, times()).at(0);
        ASSERT_EQ(y.type, dtype::f32);
        EXPECT_TRUE(near(y, expected(a, b), here.roundings(double(K)) * 4 * double(K))) << M << ' ' << K << ' ' << N << " order " << order;
      }
}
TEST_P(matmul, every_f16_number_is_read_as_it_is) {
  const auto& here = *this;
  // All finite f16 numbers, subnormals included, are multiplied by 1, and a sum with one term is exact. Columns of 16 numbers lie along N, then along K.
  host b({16, 3968}, dtype::f16, {});
  for (std::uint32_t i = 0; i < 65536; ++i) {
    float16 x;
    x.bits = std::uint16_t(i);
    if ((i & 0x7c00u) != 0x7c00u) b.at.push_back(double(float(x)));
  }
  host picks({16, 16}, dtype::f32, std::vector<double>(256, 0));
  for (std::size_t i = 0; i < 16; ++i) picks.at[17 * i] = 1;
  for (const bool along_k : {false, true})
    EXPECT_TRUE(same(here.run<op::matmul>({picks, along_k ? laid_out(b, {1, 0}) : b}, times()).at(0), b.at)) << along_k;
}
TEST_P(matmul, nothing_to_sum_gives_zeros_and_nothing_to_write_gives_nothing) {
  const auto& here = *this;
  const dtype t = here.type;
  EXPECT_TRUE(same(here.run<op::matmul>({full({2, 0}, t, 0), full({0, 3}, t, 0)}, times()).at(0), {0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(same(here.run<op::matmul>({full({0, 4}, t, 0), random({4, 3}, t, 1)}, times()).at(0), {}));
  EXPECT_TRUE(same(here.run<op::matmul>({random({2, 4}, t, 1), full({4, 0}, t, 0)}, times()).at(0), {}));
}
TEST(matmul_gradient, of_nothing_to_sum_or_to_write_is_planned) {
  const auto planned = [](const isotope::shape& a, const isotope::shape& b) {
    const auto p = isotope::plan_training<isotope::target<isotope::backend::cpu, isotope::precision::f32, isotope::kernels::reference>>(
        [&](auto s) { return sum(isotope::matmul(s.param("a", a), s.param("b", b))); });
    return p.ok() ? std::string("planned") : p.error().line();
  };
  for (const std::int64_t K : {0, 3})
    for (const std::int64_t N : {0, 5}) {
      EXPECT_EQ(planned({2, 4, K}, {K, N}), "planned") << K << ' ' << N;
      EXPECT_EQ(planned({4, K}, {2, K, N}), "planned") << K << ' ' << N;
    }
}
TEST_P(matmul, batches_broadcast_in_the_middle) {
  const auto& here = *this;
  const host a = random({3, 1, 4, 5}, here.type, 1), b = random({2, 5, 6}, here.type, 2);
  std::vector<double> y;
  for (int p = 0; p < 3; ++p)
    for (int q = 0; q < 2; ++q) {
      const host x({4, 5}, here.type, {a.at.begin() + p * 20, a.at.begin() + p * 20 + 20});
      const host w({5, 6}, here.type, {b.at.begin() + q * 30, b.at.begin() + q * 30 + 30});
      for (double v : expected(x, w)) y.push_back(v);
    }
  EXPECT_TRUE(near(here.run<op::matmul>({a, b}, times()).at(0), y, here.roundings(5) * 20));
}
TEST_P(matmul, alpha_and_beta_scale_and_beta_zero_ignores_nan) {
  const auto& here = *this;
  const host a = random({4, 7}, here.type, 1), b = random({7, 3}, here.type, 2), c = random({4, 3}, here.type, 3);
  // two more roundings, for alpha times the sum and beta times c
  EXPECT_TRUE(near(here.run<op::matmul>({a, b, c}, times(0.5, -2)).at(0), expected(a, b, 0.5, -2, &c), here.roundings(9) * 32));
  const host poison = full({4, 3}, here.type, nan);
  EXPECT_TRUE(near(here.run<op::matmul>({a, b, poison}, times(0.5, 0)).at(0), expected(a, b, 0.5), here.roundings(8) * 28));
}
TEST_P(matmul, the_product_may_have_the_accumulation_format_and_adds_to_its_output) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{5, 11, 6}, {40, 136, 72}};
  for (const auto& [M, K, N] : sizes) {
    const host a = random({M, K}, here.type, 1), b = random({K, N}, here.type, 2), into = random({M, N}, here.accum, 3);
    settings s;
    s.accumulate = 1;
    s.into = {into};
    auto y = expected(a, b);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += into.at[i];
    const auto r = here.run<op::matmul>({a, b}, times(1, 0, here.accum), s);
    ASSERT_EQ(r.at(0).type, here.accum);
    const double most = 4 * double(K) + 2;
    EXPECT_TRUE(
        near(r[0], y, here.roundings(double(K) + 1) * most + most * roundoff(here.accum)));  // the result is rounded before it is added
  }
}
TEST_P(matmul, an_epilogue_gives_the_bits_of_the_ops_it_replaces) {
  const auto& here = *this;
  const dtype t = here.type;
  const host x = random({9, 21}, t, 1), w = laid_out(random({21, 10}, t, 2), {1, 0}), bias = random({10}, t, 3),
             residual = random({9, 10}, t, 4);
  settings fused;
  fused.body = {here.step<op::add>({isotope::gemm_result, 2}, t), here.step<op::gelu_tanh>({8}, t, 1), here.step<op::add>({9, 3}, t, 0)};
  fused.body_outputs = {t, t};
  auto a = times();
  a.operands = 2;
  const auto y = here.run<op::matmul>({x, w, bias, residual}, a, fused);
  const auto plain = here.run<op::matmul>({x, w}, times()), sum = here.run<op::add>({plain[0], bias}),
             gate = here.run<op::gelu_tanh>({sum[0]}), last = here.run<op::add>({gate[0], residual});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_TRUE(same(y[0], last[0].at));
  EXPECT_TRUE(same(y[1], gate[0].at));
}
TEST_P(matmul, the_epilogues_of_transformers_give_the_bits_of_the_ops_they_replace) {
  const auto& here = *this;
  const dtype t = here.type;
  const host x = random({40, 136}, t, 1), w = random({136, 24}, t, 2), bias = random({24}, t, 3), other = random({40, 24}, t, 4);
  const auto product = here.run<op::matmul>({x, w}, times()).at(0), sum = here.run<op::add>({product, bias}).at(0);
  auto a = times();
  a.operands = 2;
  const auto fused = [&](std::vector<host> operands, auto body, std::vector<dtype> outputs) {
    settings s;
    s.body = body;
    s.body_outputs = outputs;
    operands.insert(operands.begin(), {x, w});
    return here.run<op::matmul>(operands, a, s);
  };
  using steps = decltype(settings::body);
  const auto gemm = isotope::gemm_result;
  EXPECT_TRUE(same(fused({bias}, steps{here.step<op::add>({gemm, 2}, t, 0)}, {t}).at(0), sum.at));
  const auto both = fused({bias}, steps{here.step<op::add>({gemm, 2}, t, 0), here.step<op::gelu_tanh>({8}, t, 1)}, {t, t});
  EXPECT_TRUE(same(both.at(0), sum.at));
  EXPECT_TRUE(same(both.at(1), here.run<op::gelu_tanh>({sum}).at(0).at));
  EXPECT_TRUE(same(fused({bias, other}, steps{here.step<op::add>({gemm, 2}, t), here.step<op::add>({8, 3}, t, 0)}, {t}).at(0),
                   here.run<op::add>({sum, other}).at(0).at));
  EXPECT_TRUE(same(fused({other}, steps{here.step<op::gelu_tanh_grad>({2, gemm}, t, 0)}, {t}).at(0),
                   here.run<op::gelu_tanh_grad>({other, product}).at(0).at));
}
TEST_P(matmul, many_tiles_match_the_definition_in_every_memory_order_and_with_epilogues) {
  const auto& here = *this;
  const dtype t = here.type;
  // Aligned sizes with and without a remainder of tiles of 64 and 128, so many that large tiles are the best.
  const std::int64_t sizes[][3] = {{252, 32, 504}, {196, 16, 520}};
  for (const auto& [M, K, N] : sizes) {
    const host a = random({M, K}, t, 1), b = random({K, N}, t, 2), bias = random({N}, t, 3), residual = random({M, N}, t, 4);
    const auto wanted = expected(a, b);
    std::vector<double> plain;
    for (int order = 0; order < 4; ++order) {
      const host x = order & 1 ? laid_out(a, {1, 0}) : a, w = order & 2 ? laid_out(b, {1, 0}) : b;
      const auto y = here.run<op::matmul>({x, w}, times()).at(0);
      EXPECT_TRUE(near(y, wanted, here.roundings(double(K)) * 4 * double(K))) << M << ' ' << K << ' ' << N << " order " << order;
      if (order == 2) plain = y.at;
    }
    if (t != dtype::f32) continue;  // a library may compute a product of 16 bits without an epilogue
    settings fused;
    fused.body = {here.step<op::add>({isotope::gemm_result, 2}, t, 1), here.step<op::gelu_tanh>({8}, t), here.step<op::add>({9, 3}, t, 0)};
    fused.body_outputs = {t, t};
    auto two = times();
    two.operands = 2;
    const auto y = here.run<op::matmul>({a, laid_out(b, {1, 0}), bias, residual}, two, fused);
    const auto sum = here.run<op::add>({host({M, N}, t, plain), bias}), gate = here.run<op::gelu_tanh>({sum[0]}),
               last = here.run<op::add>({gate[0], residual});
    ASSERT_EQ(y.size(), 2u);
    EXPECT_TRUE(same(y[0], last[0].at));
    EXPECT_TRUE(same(y[1], sum[0].at));
  }
}
TEST_P(matmul, infinities_nan_and_subnormals_follow_the_arithmetic) {
  const auto& here = *this;
  const dtype t = here.type;
  const double tiny = rounded(t, 0x1p-120);
  const host a({4, 2}, t, {infinity, 1, nan, 1, tiny, tiny, -0.0, 0.0}), b({2, 1}, t, {1, -1});
  const auto y = here.run<op::matmul>({a, b}, times());
  EXPECT_TRUE(same(y.at(0), {infinity, nan, 0, 0}));
  const host c({1, 2}, t, {infinity, infinity});
  EXPECT_TRUE(same(here.run<op::matmul>({c, b}, times()).at(0), {nan}));
}

}  // namespace matmul_test
}  // namespace isotope::op_test
