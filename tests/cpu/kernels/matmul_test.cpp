#include "compare.hpp"

namespace matmul_test {
using namespace isotope_test;

attributes product(dtype t, int own = 2, double alpha = 1, double beta = 0) {
  return op::matmul::constants{.format = t, .operands = own, .alpha = alpha, .beta = beta};
}
array make(const shape& s, dtype t, std::uint64_t seed) { return array::random(s, t, seed); }
std::vector<array> outputs(array&& a) {
  std::vector<array> r;
  r.push_back(std::move(a));
  return r;
}
/// Sums of K products of numbers below 1, each rounded once: |error| <= K 2^-24 sum |a b|, and sum |a b| <= K against results of size
/// about sqrt(K) / 3; K 2^-24 3 sqrt(K) stays below 1e-6 sqrt(K) here. A bf16 result is rounded to 8 bits.
double bound(std::int64_t K, dtype t) { return t == dtype::bf16 ? 0x1p-8 : 1e-6 * std::sqrt(double(K)) + 1e-7; }

template <class P> void all_orders(std::int64_t M, std::int64_t N, std::int64_t K, dtype result) {
  for (int order = 0; order < 4; ++order) {
    const bool ta = (order & 1) != 0, tb = (order & 2) != 0;
    const array a = make(ta ? shape{K, M} : shape{M, K}, P::type, 1), b = make(tb ? shape{N, K} : shape{K, N}, P::type, 2);
    const op_case c({ta ? a.transposed() : a.v, tb ? b.transposed() : b.v}, outputs(array({M, N}, result, 7)), product(result));
    SCOPED_TRACE(testing::Message() << "M " << M << " N " << N << " K " << K << " order " << order);
    expect_matches<op::matmul, P>(c, {bound(K, result)});
  }
}

TEST(matmul, every_memory_order_and_awkward_size_matches_the_reference) {
  for (auto [M, N, K] :
       {std::array{1, 1, 1}, {1, 65, 7}, {13, 17, 31}, {12, 32, 256}, {97, 33, 257}, {768, 65, 128}, {5, 300, 513}, {31, 15, 64}})
    all_orders<precision::f32>(M, N, K, dtype::f32);
}
TEST(matmul, bf16_operands_give_bf16_and_f32_products) {
  for (auto [M, N, K] : {std::array{1, 1, 1}, {13, 17, 31}, {97, 33, 257}, {65, 128, 96}}) {
    all_orders<precision::bf16>(M, N, K, dtype::bf16);
    all_orders<precision::bf16>(M, N, K, dtype::f32);
  }
}
TEST(matmul, a_few_rows_match_in_every_order_and_type) {
  // Native products of one to four rows have loops of their own: whole vectors and rest of K and N, and more than one part of a long sum.
  for (const std::int64_t M : {1, 2, 3, 4})
    for (auto [N, K] : {std::array{16, 1}, {17, 33}, {100, 400}, {700, 5}, {531, 31}, {40, 3073}, {33, 7000}}) {
      all_orders<precision::f32>(M, N, K, dtype::f32);
      all_orders<precision::bf16>(M, N, K, dtype::bf16);
    }
  for (const std::int64_t M : {1, 3}) {
    const array a = make({2, M, 70}, dtype::f32, 1), b = make({2, 70, 90}, dtype::f32, 2);
    op_case add({a.v, b.v}, outputs(make({2, M, 90}, dtype::f32, 4)), product(dtype::f32, 2, 0.5));
    add.accumulate = 1;
    expect_matches<op::matmul, precision::f32>(add, {1e-5});
  }
}
TEST(matmul, strides_that_share_cache_sets_are_copied_and_match) {
  all_orders<precision::f32>(130, 40, 1024, dtype::f32);
  all_orders<precision::f32>(1024, 40, 130, dtype::f32);
}
TEST(matmul, empty_inner_dimension_gives_zeros) { all_orders<precision::f32>(5, 37, 0, dtype::f32); }

TEST(matmul, batches_fold_repeat_and_stay_apart) {
  const array a = make({2, 3, 10, 20}, dtype::f32, 1), w = make({20, 7}, dtype::f32, 2), each = make({2, 3, 20, 7}, dtype::f32, 3),
              some = make({3, 20, 7}, dtype::f32, 4), first = make({1, 10, 20}, dtype::f32, 5);
  expect_matches<op::matmul, precision::f32>({{a.v, w.v}, outputs(array({2, 3, 10, 7}, dtype::f32)), product(dtype::f32)}, {1e-5});
  expect_matches<op::matmul, precision::f32>({{a.v, each.v}, outputs(array({2, 3, 10, 7}, dtype::f32)), product(dtype::f32)}, {1e-5});
  expect_matches<op::matmul, precision::f32>({{a.v, some.v}, outputs(array({2, 3, 10, 7}, dtype::f32)), product(dtype::f32)}, {1e-5});
  expect_matches<op::matmul, precision::f32>({{first.v, each.v}, outputs(array({2, 3, 10, 7}, dtype::f32)), product(dtype::f32)}, {1e-5});
}
TEST(matmul, large_right_operands_are_packed_in_chunks) {
  all_orders<precision::f32>(20, 5000, 300, dtype::f32);  // 1.5 million floats, in two chunks of one batch
  const array a = make({90, 5, 100}, dtype::f32, 1), b = make({90, 100, 130}, dtype::f32, 2);  // 1.4 million, some batches at a time
  expect_matches<op::matmul, precision::f32>({{a.v, b.v}, outputs(array({90, 5, 130}, dtype::f32)), product(dtype::f32)}, {1e-5});
}
TEST(matmul, long_sums_and_many_rows_are_made_in_chunks) {
  // With AVX-512, 3840 is the longest sum that native products make in one chunk, and 8000 takes three; sums of a bf16 result wait in between.
  for (const std::int64_t K : {3840, 3841, 8000}) {
    all_orders<precision::f32>(21, 50, K, dtype::f32);
    all_orders<precision::bf16>(50, 29, K, dtype::bf16);
  }
  all_orders<precision::bf16>(300, 20, 3841, dtype::f32);  // more rows than a chunk has
  all_orders<precision::f32>(2900, 40, 500, dtype::f32);   // 1.5 million floats of A
}
TEST(matmul, alpha_beta_and_accumulation_apply) {
  const array a = make({40, 50}, dtype::f32, 1), b = make({50, 37}, dtype::f32, 2), c = make({40, 37}, dtype::f32, 3);
  op_case k({a.v, b.v, c.v}, outputs(make({40, 37}, dtype::f32, 4)), product(dtype::f32, 3, 0.5, -2));
  expect_matches<op::matmul, precision::f32>(k, {1e-5});
  const array tall = make({40, 5000}, dtype::f32, 7), deep = make({5000, 37}, dtype::f32, 8);
  for (const double beta : {0.0, 2.0}) {
    op_case chunks({tall.v, deep.v, c.v}, outputs(make({40, 37}, dtype::f32, 4)), product(dtype::f32, 3, 0.5, beta));
    chunks.accumulate = 1;
    expect_matches<op::matmul, precision::f32>(chunks, {1e-4});
  }
  op_case add({a.v, b.v}, outputs(make({40, 37}, dtype::f32, 4)), product(dtype::f32));
  add.accumulate = 1;
  expect_matches<op::matmul, precision::f32>(add, {1e-5});
  const array wide = make({50, 64}, dtype::f32, 5);
  op_case in_place({a.v, wide.v}, outputs(make({40, 64}, dtype::f32, 4)), product(dtype::f32));
  in_place.accumulate = 1;
  expect_matches<op::matmul, precision::f32>(in_place, {1e-5});
}
TEST(matmul, beta_zero_ignores_nan) {
  const array a = make({4, 5}, dtype::f32, 1), b = make({5, 6}, dtype::f32, 2), c({4, 6}, dtype::f32, std::nan(""));
  expect_matches<op::matmul, precision::f32>({{a.v, b.v, c.v}, outputs(array({4, 6}, dtype::f32)), product(dtype::f32, 3, 1, 0)}, {1e-5});
}

TEST(matmul, fused_epilogues_match_and_may_take_the_place_of_their_operand) {
  const auto check = [&]<class P>(P, std::int64_t M, std::int64_t N) {
    const array a = make({M, 40}, P::type, 1), b = make({40, N}, P::type, 2), turned = make({N, 40}, P::type, 2),
                bias = make({N}, P::type, 3), residual = make({M, N}, P::type, 4);
    for (int way = 0; way < 4; ++way) {
      SCOPED_TRACE(testing::Message() << "M " << M << " N " << N << " way " << way);
      op_case c({a.v, way % 2 == 0 ? b.v : turned.transposed(), bias.v, way / 2 == 0 ? residual.v : bias.v}, {}, product(P::type));
      c.out.push_back(array({M, N}, P::type));
      c.out.push_back(array({M, N}, P::type));
      const auto with = [&]<class Set>(Set) {
        c.body = {instruct<kernel_of<op::add, P, Set>>(P::type, {isotope::gemm_result, 2}, 1),
                  instruct<kernel_of<op::gelu_tanh, P, Set>>(P::type, {max_inputs}),
                  instruct<kernel_of<op::add, P, Set>>(P::type, {max_inputs + 1, 3}, 0)};
        // the rounding of intermediates to bf16 may fall the other way where the product differs in its last bit
        expect_matches<op::matmul, P>(c, {P::type == dtype::bf16 ? 0x1p-6 : 1e-5, P::type == dtype::bf16 ? 0x1p-7 : 1e-5});
      };
      with(kernels::portable{});
      with(kernels::native{});
    }
  };
  // Part of a cell, rows that go together, and a size at which cells are largest.
  for (auto [M, N] : {std::array{3, 300}, {101, 300}, {101, 30}, {512, 1000}}) {
    check(precision::f32{}, M, N);
    check(precision::bf16{}, M, N);
  }
}
}  // namespace matmul_test
