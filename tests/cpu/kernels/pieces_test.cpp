#include <isotope/kernels/cpu/native/matmul.hpp>

#include "compare.hpp"
#include "imitated_unit.hpp"

#include <algorithm>
#include <string>
#include <vector>

/// f32 products on a matrix unit for bf16, each number as three pieces. The unit is emulated, or that of the processor.
namespace pieces_test {
using namespace isotope_test;
using cpu::native::matmul;
using cpu::native::matrix_unit;

/// The product in pieces; the right operand is the transpose of a dense weight, which is packed first.
template <class Unit> struct by_pieces {
  static void run(const cpu::launch& given) {
    if constexpr (Unit::there && cpu::native::lanes == Unit::rows) {
      using gemm = cpu::native::gemm_by_pieces<Unit>;
      cpu::launch l = given;
      std::vector<cpu::view> in(given.in.begin(), given.in.end());
      const auto* const w = in[1].as<const float>();
      const std::int64_t N = in[1].dims[-1], K = in[1].dims[-2];
      ASSERT_TRUE(in[1].strides[0] == 1 && in[1].strides[1] == K);
      const cpu::native::weight_panels panels(N, K);
      const cpu::native::weight_pieces split(N, K);
      constexpr std::size_t margin = 32;
      std::vector<float> packed(std::size_t(panels.elements()), 77.0f), pieces(std::size_t(split.elements()) + 2 * margin, 77.0f);
      for (std::int64_t p = 0; p < panels.count(); ++p) panels.pack(w, p, packed.data());
      for (std::int64_t p = 0; p < split.count(); ++p) split.pack(w, p, pieces.data() + margin);
      for (std::size_t i = 0; i < margin; ++i) ASSERT_TRUE(pieces[i] == 77 && pieces[pieces.size() - 1 - i] == 77);
      in[1].data = packed.data();
      l.in = in;
      const cpu::portable::matmul_shape s(l);
      const cpu::portable::gemm_epilogue finish(l, s);
      const auto bytes = gemm::bytes(s.M, s.K);
      std::vector<std::byte> scratch(std::size_t(bytes) + 64, std::byte(77));
      gemm(l, s, finish, packed.data(), pieces.data() + margin, scratch.data(), bytes).run();
      for (std::size_t i = std::size_t(bytes); i < scratch.size(); ++i) ASSERT_EQ(int(scratch[i]), 77);
    }
  }
};
using imitated = by_pieces<imitated_unit<>>;
using vectors = matmul<precision::f32>;  // where nobody asks for the unit

/// A unit that leaves out one of the six products of each tile of K.
struct forgetful_unit : imitated_unit<> {
  using imitated_unit::imitated_unit;
  inline static int left_out = 0;
  inline static thread_local int made[8] = {};
  template <int T> static void zero() {
    made[T] = 0;
    imitated_unit::zero<T>();
  }
  template <int C, int A, int B> static void add_pairs() {
    if (made[C]++ % 6 != left_out) imitated_unit::add_pairs<C, A, B>();
  }
};
/// Operands of a product, each as it is or transposed in memory: bit 0 of `order` is A's, bit 1 B's.
struct product {
  std::int64_t M, N, K;
  int order = 0;
  array a, b;

  template <class F>
  product(std::int64_t m, std::int64_t n, std::int64_t k, int how, const F& element, std::int64_t batches = 1)
      : M(m),
        N(n),
        K(k),
        order(how),
        a((how & 1) != 0 ? shape{batches, k, m} : shape{batches, m, k}, dtype::f32),
        b((how & 2) != 0 ? shape{batches, n, k} : shape{batches, k, n}, dtype::f32) {
    for (std::int64_t i = 0; i < batches * M; ++i)
      for (std::int64_t j = 0; j < K; ++j) a.set(i / M * M * K + ((how & 1) != 0 ? j * M + i % M : i % M * K + j), element(0, i, j));
    for (std::int64_t i = 0; i < batches * N; ++i)
      for (std::int64_t j = 0; j < K; ++j) b.set(i / N * N * K + ((how & 2) != 0 ? i % N * K + j : j * N + i % N), element(1, i, j));
  }
  double left(std::int64_t i, std::int64_t k) const { return a.at((order & 1) != 0 ? k * M + i : i * K + k); }
  double right(std::int64_t k, std::int64_t j) const { return b.at((order & 2) != 0 ? j * K + k : k * N + j); }

  /// The first `rows` rows of the first batch as a matrix, or all batches.
  op_case matrices(std::int64_t rows, double alpha = 1) const {
    const auto matrix = [](cpu::view v) {
      v.dims = {v.dims[1], v.dims[2]};
      v.strides = {v.strides[1], v.strides[2]};
      return v;
    };
    cpu::view x = matrix((order & 1) != 0 ? a.transposed() : a.v);
    x.dims = {rows, K};
    return with({x, matrix((order & 2) != 0 ? b.transposed() : b.v)}, {rows, N}, alpha);
  }

 private:
  static op_case with(std::vector<cpu::view> in, const shape& y, double alpha) {
    std::vector<array> out;
    out.emplace_back(y, dtype::f32, 7);
    return {in, std::move(out), op::matmul::constants{.format = dtype::f32, .operands = 2, .alpha = alpha, .batch_invariant = true}};
  }
};
double number(int operand, std::int64_t i, std::int64_t k) {
  return 2 * double(philox(3, std::uint64_t(i * 65536 + k), std::uint32_t(operand), 7)[0]) * 0x1p-32 - 1;
}
/// The mean square of the error against f64, relative to that of the result, over all elements of the first batch.
double error_of(const product& p, const array& y) {
  double error = 0, all = 0;
  for (std::int64_t i = 0; i < p.M; ++i)
    for (std::int64_t j = 0; j < p.N; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.K; ++k) sum += p.left(i, k) * p.right(k, j);
      error += (y.at(i * p.N + j) - sum) * (y.at(i * p.N + j) - sum);
      all += sum * sum;
    }
  return error / all;
}
/// Whether two results have the same bits; any NaN is as good as another.
bool same(const array& a, const array& b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = float(a.at(i)), y = float(b.at(i));
    if (std::isnan(x) ? !std::isnan(y) : std::bit_cast<std::uint32_t>(x) != std::bit_cast<std::uint32_t>(y)) return false;
  }
  return true;
}

class pieces : public testing::Test {
  void SetUp() override {
    if (cpu::native::lanes != 16) GTEST_SKIP() << "needs a build for AVX-512";
  }
};

/// Blocks of K and of rows, panels of two vectors and of one, strips of one tile and of two.
constexpr std::int64_t sizes[][3] = {{1, 64, 96}, {16, 112, 130}, {17, 33, 97}, {50, 100, 800}, {70, 49, 800}, {33, 64, 3104}};

TEST_F(pieces, are_as_exact_as_f32) {
  for (const auto& [M, N, K] : sizes)
    for (int order = K > 200 ? 3 : 2; order < 4; ++order) {
      const product p(M, N, K, order, number);
      const op_case c = p.matrices(M);
      const double given = error_of(p, c.run<imitated>(&pool_of(1))[0]);
      EXPECT_LE(given, 1e-15 * double(K + 8)) << M << ' ' << N << ' ' << K << ' ' << order;
      EXPECT_LE(given, error_of(p, c.run<vectors>(&pool_of(1))[0])) << M << ' ' << N << ' ' << K << ' ' << order;
    }
}
template <class Unit> void keep_their_bits(const product& p) {
  using Kernel = by_pieces<Unit>;
  const array wanted = std::move(p.matrices(p.M).run<imitated>(&pool_of(1))[0]);
  const auto expect = [&](const array& y, std::int64_t rows, const char* what) {
    EXPECT_TRUE(same(wanted, y, rows * p.N)) << what << ": " << p.M << ' ' << p.N << ' ' << p.K << ' ' << p.order;
  };
  for (const int threads : {1, 2, 5}) expect(p.matrices(p.M).run<Kernel>(&pool_of(threads))[0], p.M, "threads");
  for (const std::int64_t rows : {p.M / 2, p.M / 3, std::int64_t(1)})
    if (rows > 0) expect(p.matrices(rows).run<Kernel>(&pool_of(2))[0], rows, "rows");
}
TEST_F(pieces, of_a_row_do_not_depend_on_other_rows_or_on_threads) {
  for (const auto& [M, N, K] : sizes)
    for (const int order : {2, 3}) keep_their_bits<imitated_unit<>>(product(M, N, K, order, number));
}
TEST_F(pieces, take_epilogues) {
  const product p(40, 70, 100, 2, number);
  const array bias = array::random({70}, dtype::f32, 3), plain = std::move(p.matrices(40).run<imitated>(&pool_of(1))[0]);
  op_case c = p.matrices(40, 0.5);
  c.in.push_back(bias.v);
  using set = std::conditional_t<cpu::native::available, kernels::native, kernels::portable>;
  c.body = {instruct<kernel_of<op::add, precision::f32, set>>(dtype::f32, {isotope::gemm_result, 2}, 0)};
  for (const int threads : {1, 3}) {
    const auto given = c.run<imitated>(&pool_of(threads));
    for (std::int64_t i = 0; i < 40 * 70; ++i) ASSERT_EQ(given[0].at(i), double(float(plain.at(i) * 0.5) + float(bias.at(i % 70))));
  }
}
/// Infinities, NaN, numbers that bf16 rounds to infinity, and numbers and sums that the unit takes for zero: results are those of f32, and of the vector kernel
/// where the unit cannot make them.
double odd_number(int kind, int operand, std::int64_t i, std::int64_t k) {
  const double x = number(operand, i, k);
  const std::int64_t at = i * 7 + k * 13 + operand;
  if (kind == 0) return at % 501 == 0 ? INFINITY : at % 701 == 0 ? NAN : at % 997 == 0 ? 0x1.fffffep127 : x;
  if (kind == 1) return x * (i % 4 == 0 ? 0x1p-130 : i % 4 == 1 ? 0x1p-60 : i % 4 == 2 ? 0x1p60 : 1);
  if (kind == 2) return operand == 0 ? (i % 3 == 0 ? std::exp(90 * (x - 1)) : i % 3 == 1 && k < 90 ? 0x1p-140 * x : 0x1p-120 * x) : x;
  return k % 3 == 0 ? x * 0x1p-140 : x * 0x1p90 * (operand == 0 ? 1 : 0x1p-110);
}
TEST_F(pieces, keep_what_the_unit_would_lose) {
  for (int kind = 0; kind < 4; ++kind) {
    const product p(50, 75, 200, 2, [&](int operand, std::int64_t i, std::int64_t k) { return odd_number(kind, operand, i, k); });
    const array given = std::move(p.matrices(p.M).run<imitated>(&pool_of(1))[0]),
                by_vectors = std::move(p.matrices(p.M).run<vectors>(&pool_of(1))[0]);
    for (std::int64_t i = 0; i < p.M; ++i)
      for (std::int64_t j = 0; j < p.N; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.K; ++k) sum += std::fabs(p.left(i, k) * p.right(k, j));
        const double y = given.at(i * p.N + j), z = by_vectors.at(i * p.N + j);
        if (std::isnan(z) ? std::isnan(y) : y == z) continue;
        ASSERT_LE(std::fabs(y - z), 0x1p-20 * sum + 0x1p-149 * double(p.K)) << kind << ' ' << i << ' ' << j;
      }
    keep_their_bits<imitated_unit<>>(p);
  }
}
TEST_F(pieces, that_are_left_out_are_found) {
  const product p(40, 40, 96, 2, number);
  for (const int left_out : {0, 3, 5, -1}) {  // high times low, middle times middle, which is the least, and low times high; nothing
    forgetful_unit::left_out = left_out;
    const double error = error_of(p, p.matrices(40).run<by_pieces<forgetful_unit>>(&pool_of(1))[0]);
    EXPECT_EQ(left_out >= 0, error > 1e-15 * (96 + 8)) << left_out << ' ' << error;
  }
}
/// So the bound of matmul holds for them.
TEST_F(pieces, have_no_longer_sums_than_vectors) {
  for (std::int64_t K = 96; K < 20000; K += 7) ASSERT_LE(cpu::native::gemm_by_pieces<imitated_unit<>>::chain(K), vectors::chain(K)) << K;
}
/// The kernel of a program uses them for many rows if the product is not batch invariant, and panels of f32 otherwise.
TEST_F(pieces, are_for_many_rows_where_bits_may_depend_on_their_number) {
  using kernel = matmul<precision::f32, imitated_unit<>>;
  if constexpr (kernel::pieces)
    for (const std::int64_t M : {127, 128})
      for (const bool batch_invariant : {false, true}) {
        const product p(M, 40, 100, 2, number);
        op_case c = p.matrices(M);
        const bool many = M == 128 && !batch_invariant;
        const array wanted = std::move((many ? c.run<imitated>(&pool_of(1)) : c.run<vectors>(&pool_of(1)))[0]);
        op::matmul::constants t{.format = dtype::f32, .operands = 2, .batch_invariant = batch_invariant};
        c.attr = t;
        const std::vector<shape> in{c.in[0].dims, c.in[1].dims}, out{c.out[0].v.dims};
        const std::int64_t elements = kernel::packed_transposed({in, out, &c.attr});
        EXPECT_EQ(elements > cpu::native::weight_panels(40, 100).elements(), !batch_invariant);
        std::vector<float> packed(std::size_t(elements), 77.0f);
        cpu::view w = c.in[1];
        std::swap(w.dims.d[0], w.dims.d[1]);
        kernel::pack_transposed(w, packed.data(), &pool_of(2), elements);
        c.in[1].data = packed.data();
        op::matmul::pack(c.attr);
        for (const int threads : {1, 3})
          EXPECT_TRUE(same(wanted, c.run<kernel>(&pool_of(threads))[0], M * 40)) << M << ' ' << batch_invariant;
      }
}
/// The instructions give the same bits as their emulation after the manual.
TEST(matrix_unit, multiplies_f32_with_the_bits_of_its_emulation) {
  if constexpr (!vectors::pieces) {
    GTEST_SKIP() << "not compiled for a processor with AMX";
  } else if (!matrix_unit::permitted()) {
    GTEST_SKIP() << cpu::tiles_refused();
  } else {
    for (const auto& [M, N, K] : sizes) keep_their_bits<matrix_unit>(product(M, N, K, 2, number));
    for (int kind = 0; kind < 4; ++kind)
      keep_their_bits<matrix_unit>(
          product(50, 75, 200, 2, [&](int operand, std::int64_t i, std::int64_t k) { return odd_number(kind, operand, i, k); }));
  }
}
}  // namespace pieces_test
