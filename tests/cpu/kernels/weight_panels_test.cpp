#include "compare.hpp"

#include <isotope/kernels/cpu/native/matmul.hpp>

#include <bit>
#include <cmath>
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

enum class body { none, bias, gelu_erf, gelu_tanh, residual, square };
using set = std::conditional_t<cpu::native::available, kernels::native, kernels::portable>;
template <class Op> cpu::instruction instruction_of(std::initializer_list<int> args, int store) {
  return instruct<kernel_of<Op, precision::f32, set>>(dtype::f32, args, store);
}
std::vector<cpu::instruction> instructions(body b) {
  constexpr int sum = max_inputs;  // the result of the first instruction
  if (b == body::none) return {};
  std::vector<cpu::instruction> all{instruction_of<op::add>({isotope::gemm_result, 2}, b == body::bias ? 0 : -1)};
  if (b == body::gelu_erf) all.push_back(instruction_of<op::gelu_erf>({sum}, 0));
  if (b == body::gelu_tanh) all.push_back(instruction_of<op::gelu_tanh>({sum}, 0));
  if (b == body::residual) all.push_back(instruction_of<op::add>({3, sum}, 0));
  if (b == body::square) all.push_back(instruction_of<op::square>({sum}, 0));
  return all;
}

/// Compares on 1, 2 and 3 threads. `batch_invariant`, since few rows have another order of terms otherwise.
void expect_same(std::int64_t M, std::int64_t N, std::int64_t K, bool turned, body then, double alpha = 1) {
  SCOPED_TRACE(testing::Message() << "M " << M << " N " << N << " K " << K << " turned " << turned << " body " << int(then));
  const array a = array::random(turned ? shape{K, M} : shape{M, K}, dtype::f32, 1), w = array::random({N, K}, dtype::f32, 2),
              bias = array::random({N}, dtype::f32, 3), residual = array::random({M, N}, dtype::f32, 4);
  std::vector<cpu::view> in{turned ? a.transposed() : a.v, w.transposed()};
  if (then != body::none) in.push_back(bias.v);
  if (then == body::residual) in.push_back(residual.v);
  std::vector<array> out;
  out.emplace_back(shape{M, N}, dtype::f32, 7);
  op_case c(in, std::move(out), op::matmul::constants{.format = dtype::f32, .operands = 2, .alpha = alpha, .batch_invariant = true});
  c.body = instructions(then);
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
                         {97, 192, 40},
                         {600, 50, 30},
                         {97, 200, 40},
                         {3, 20, 4000},
                         {70, 130, 1537}})
    for (const bool turned : {false, true})
      for (const body then : {body::none, body::bias, body::gelu_erf, body::gelu_tanh, body::residual, body::square})
        expect_same(M, N, K, turned, then);
  expect_same(20, 50, 60, false, body::bias, 0.5);
  expect_same(20, 64, 60, false, body::none, 0.5);
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
/// Products of a8 with a weight whose codes are unpacked.
template <class P> struct by_codes : cpu::native::matmul<P> {
  using base = cpu::native::matmul<P>;
  static void run(const cpu::launch& given) {
    if constexpr (base::unpacks_codes) {
      cpu::launch l = given;
      cpu::view w = given.in[1];
      std::swap(w.dims.d[0], w.dims.d[1]);
      const std::vector<shape> in{given.in[0].dims, given.in[1].dims}, out{given.out[0].dims};
      const auto bytes = std::size_t(base::packed_transposed({in, out, given.attr})) * sizeof(typename P::storage);
      constexpr std::size_t margin = 64;
      std::vector<std::byte> room(bytes + 3 * margin, std::byte(77));
      std::byte* const packed = room.data() + margin + (margin - reinterpret_cast<std::uintptr_t>(room.data()) % margin);
      base::pack_transposed(w, packed, given.pool, 0);
      for (std::size_t i = 0; i < margin; ++i)
        ASSERT_TRUE(packed[-1 - std::ptrdiff_t(i)] == std::byte(77) && packed[bytes + i] == std::byte(77));
      std::vector<cpu::view> all(given.in.begin(), given.in.end());
      all[1].data = packed;
      all[1].type = P::type;
      attributes t = *given.attr;
      op::matmul::pack(t);
      l.in = all;
      l.attr = &t;
      base::run(l);
    }
  }
};
enum class fused { nothing, bias, gelu, residual, both };
/// Compares with products of the weight in blocks. Rows of x have numbers of many sizes, one is NaN, and one scale of the weight is infinite where N is 37; any NaN
/// is as good as another.
template <class P> void codes_give_the_bits_of_blocks(std::int64_t M, std::int64_t N, std::int64_t K, dtype type, fused how) {
  if constexpr (by_codes<P>::unpacks_codes) {
    SCOPED_TRACE(testing::Message() << name_of(type) << " M " << M << " N " << N << " K " << K << " body " << int(how));
    array x = array::random({M, K}, P::type, 1), bias = array::random({N}, P::type, 3);
    const array w = array::random({N, K}, dtype::f32, 2), residual = array::random({M, N}, P::type, 4);
    for (std::int64_t k = 0; k < K; ++k) {
      if (M > 20) x.set(18 * K + k, 0x1p-90 * x.at(18 * K + k)), x.set(19 * K + k, 0);
      if (M > 36) x.set(36 * K + k, 0x1p-129 * x.at(36 * K + k));
    }
    bias.set(0, 0);
    if (M > 50) x.set(49 * K + 5, NAN), bias.set(N - 1, 0x1p-130);
    std::vector<std::byte> bytes(std::size_t(quantized::bytes_of(type, N, K)));
    quantized::store(type, w.v.as<const float>(), 0, N * K, K, bytes.data());
    if (N == 37) bytes[2 * 3] = std::byte(0), bytes[2 * 3 + 1] = std::byte(0x7c);
    cpu::view blocks = w.transposed();
    blocks.type = type, blocks.data = bytes.data();
    using add = kernel_of<op::add, P, kernels::native>;
    op_case c({x.v, blocks, bias.v, residual.v}, {}, op::matmul::constants{.format = P::type, .operands = 2, .a8 = true});
    c.out.emplace_back(shape{M, N}, P::type);
    const bool two = how == fused::gelu || how == fused::residual;
    if (how == fused::nothing) c.in.resize(2);
    else c.body = {instruct<add>(P::type, {isotope::gemm_result, 2}, two ? -1 : 0)};
    if (how == fused::both) c.out.emplace_back(shape{M, N}, P::type);
    if (how == fused::gelu) c.body.push_back(instruct<kernel_of<op::gelu_erf, P, kernels::native>>(P::type, {max_inputs}, 0));
    if (how == fused::residual || how == fused::both) c.body.push_back(instruct<add>(P::type, {max_inputs, 3}, how == fused::both ? 1 : 0));
    const auto numbers = [&](const std::vector<array>& y) {
      std::vector<std::uint64_t> all;
      for (const array& a : y)
        for (std::int64_t i = 0; i < a.count(); ++i) all.push_back(std::isnan(a.at(i)) ? 1 : std::bit_cast<std::uint64_t>(a.at(i)));
      return all;
    };
    const auto wanted = numbers(c.template run<cpu::native::matmul<P>>(&pool_of(1)));
    for (const int threads : {1, 2, 3}) EXPECT_EQ(wanted, numbers(c.template run<by_codes<P>>(&pool_of(threads)))) << threads << " threads";
  }
}
TEST(weight_panels, of_unpacked_codes_give_the_bits_of_products_with_weights_in_blocks) {
  if (!by_codes<precision::bf16>::unpacks_codes) GTEST_SKIP() << "needs a build with AVX-512 VNNI and without AMX";
  for (auto [M, N, K] : {std::array{1, 16, 32}, {5, 37, 96}, {17, 64, 384}, {61, 96, 416}, {530, 32, 64}, {20, 96, 2144}})
    for (const fused how : {fused::nothing, fused::bias, fused::gelu, fused::residual, fused::both}) {
      codes_give_the_bits_of_blocks<precision::bf16>(M, N, K, M == 17 ? dtype::q4_0 : dtype::q8_0, how);
      if (how <= fused::bias) codes_give_the_bits_of_blocks<precision::f32>(M, N, K, M == 61 ? dtype::q4_0 : dtype::q8_0, how);
    }
}

}  // namespace weight_panels_test
