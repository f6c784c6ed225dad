#include "compare.hpp"

#include <isotope/kernels/cpu/native/matmul.hpp>

#include <vector>

/// Products with weights that were packed when they were stored have the bits of products with the weights themselves.
namespace weight_panels_test {
using namespace isotope_test;
using product = cpu::native::matmul<precision::f32>;
using cpu::native::weight_panels;

/// The matmul with a packed copy of its right operand, which is the transpose of a dense weight.
struct by_panels : product {
  static void run(const cpu::launch& given) {
    cpu::launch l = given;
    cpu::view w = given.in[1];
    std::swap(w.dims.d[0], w.dims.d[1]);
    const std::vector<shape> in{given.in[0].dims, given.in[1].dims}, out{given.out[0].dims};
    constexpr std::size_t margin = 32;
    std::vector<float> packed(std::size_t(product::packed_transposed({in, out, given.attr})) + 2 * margin, 77.0f);
    pack_transposed(w, packed.data() + margin, given.pool);
    for (std::size_t i = 0; i < margin; ++i) ASSERT_TRUE(packed[i] == 77 && packed[packed.size() - 1 - i] == 77);
    std::vector<cpu::view> all(given.in.begin(), given.in.end());
    all[1].data = packed.data() + margin;
    attributes t = *given.attr;
    op::matmul::pack(t);
    l.in = all;
    l.attr = &t;
    product::run(l);
  }
};

/// Compares on 1, 2 and 3 threads. `batch_invariant`, since few rows have another order of terms otherwise.
void expect_same(std::int64_t M, std::int64_t N, std::int64_t K, bool turned, bool with_body, double alpha = 1) {
  SCOPED_TRACE(testing::Message() << "M " << M << " N " << N << " K " << K << " turned " << turned << " body " << with_body);
  const array a = array::random(turned ? shape{K, M} : shape{M, K}, dtype::f32, 1), w = array::random({N, K}, dtype::f32, 2),
              bias = array::random({N}, dtype::f32, 3);
  std::vector<cpu::view> in{turned ? a.transposed() : a.v, w.transposed()};
  if (with_body) in.push_back(bias.v);
  std::vector<array> out;
  out.emplace_back(shape{M, N}, dtype::f32, 7);
  op_case c(in, std::move(out), op::matmul::constants{.format = dtype::f32, .operands = 2, .alpha = alpha, .batch_invariant = true});
  using set = std::conditional_t<cpu::native::available, kernels::native, kernels::portable>;
  if (with_body) c.body = {instruct<kernel_of<op::add, precision::f32, set>>(dtype::f32, {isotope::gemm_result, 2}, 0)};
  const auto wanted = c.run<product>(&pool_of(1));
  for (const int threads : {1, 2, 3}) EXPECT_EQ(wanted[0].bytes, c.run<by_panels>(&pool_of(threads))[0].bytes) << threads << " threads";
}

TEST(weight_panels, give_the_bits_of_products_with_the_weights) {
  for (auto [M, N, K] : {std::array{1, 1, 1},
                         {7, 47, 15},
                         {8, 48, 16},
                         {9, 49, 17},
                         {16, 384, 384},
                         {13, 100, 385},
                         {65, 33, 70},
                         {5, 70, 0},
                         {97, 200, 40},
                         {3, 20, 4000},
                         {70, 130, 1537}})
    for (const bool turned : {false, true})
      for (const bool body : {false, true}) expect_same(M, N, K, turned, body);
  expect_same(20, 50, 60, false, true, 0.5);
  expect_same(20, 50, 60, false, false, 0.5);
}

/// A panel holds so many rows of the weight, one term after another; the last one is padded with zeros.
TEST(weight_panels, hold_one_term_of_all_their_rows_after_another) {
  constexpr std::int64_t N = weight_panels::cols + 3, K = 5;
  const array w = array::random({N, K}, dtype::f32, 4);
  const weight_panels of(N, K);
  std::vector<float> packed(std::size_t(of.elements()), 77.0f);
  for (std::int64_t p = 0; p < of.count(); ++p) of.pack(w.v.as<const float>(), p, packed.data());
  for (std::int64_t p = 0; p < of.count(); ++p)
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t j = 0; j < of.width(p); ++j) {
        const std::int64_t n = weight_panels::start(p) + j;
        EXPECT_EQ(packed[std::size_t(of.at(p, k) + j)], n < N ? w.v.as<const float>()[n * K + k] : 0.0f) << p << ' ' << k << ' ' << j;
      }
}
}  // namespace weight_panels_test
