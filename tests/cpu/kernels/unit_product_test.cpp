#include "bf16_contract.hpp"
#include "imitated_unit.hpp"

#include <numeric>

/// Matmuls by a matrix unit, in bf16 and of activations and weights in 8 bits. The code around the instructions runs with an emulated unit on every processor, the instructions where the processor has
/// them.
namespace unit_product_test {
using namespace isotope_test;
using cpu::native::matmul;
using cpu::native::matrix_unit;
template <unit_fault Fault> using product_with = matmul<precision::bf16, imitated_unit<Fault>>;
using imitated = product_with<unit_fault::none>;

/// Tests run only with vectors of 16 f32, for which the tiles are made.
class unit_product : public testing::Test {
  void SetUp() override {
    if (!imitated::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};
template <class F> void all_orders(std::int64_t M, std::int64_t N, std::int64_t K, const F& element) {
  ASSERT_EQ("", (broken_in_any_order<imitated>(M, N, K, element)));
}

TEST_F(unit_product, sizes_around_tiles_keep_the_contract) {
  for (auto [M, N, K] :
       {std::array{5, 1, 1}, {15, 17, 31}, {17, 15, 33}, {31, 33, 15}, {33, 31, 17}, {16, 16, 32}, {32, 32, 64}, {48, 65, 95}})
    all_orders(M, N, K, random_number);
}
TEST_F(unit_product, sizes_around_blocks_and_cells_keep_the_contract) {
  for (auto [M, N, K] : {std::array{33, 40, 769}, {24, 65, 1537}, {288, 33, 40}, {40, 300, 64}, {600, 24, 33}})
    all_orders(M, N, K, random_number);
}
TEST_F(unit_product, rows_that_lie_in_whole_tiles_keep_the_contract) {
  for (int order = 0; order < 4; ++order)
    for (auto [M, N, K] : {std::array{64, 96, 128}, {96, 64, 768}, {32, 320, 64}})
      ASSERT_EQ("", (broken_contract<imitated>({M, N, K, order}, random_number)));
}
TEST_F(unit_product, sums_that_wait_for_chunks_keep_the_contract) {
  for (int order = 0; order < 4; ++order) ASSERT_EQ("", (broken_contract<imitated>({40, 33, 7713, order}, random_number)));
}
TEST_F(unit_product, numbers_that_a_unit_takes_for_zero_are_not_lost) {
  const auto large = [](double tiny, double other) {
    return [=](int operand, std::int64_t i, std::int64_t k) { return random_number(operand, i, k) * (operand == 0 ? tiny : other); };
  };
  for (const auto [M, N, K] : {std::array{33, 40, 50}, {40, 33, 800}}) {
    all_orders(M, N, K, large(0x1p-128, 0x1p100));
    all_orders(M, N, K, large(0x1p100, 0x1p-128));
    all_orders(M, N, K, large(0x1p-70, 0x1p-70));
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      return random_number(operand, i, k) * (i % 5 == 0 ? 0x1p-130 : i % 5 == 1 ? 0x1p-60 : i % 5 == 2 ? 0 : i % 5 == 3 ? 0x1p60 : 1);
    });
    all_orders(M, N, K, [](int operand, std::int64_t i, std::int64_t k) {
      if (i == 3 && k == 8) return double(INFINITY);
      if (i == 12 && k == 9) return double(NAN);
      return operand == 0 && i == 5 ? 0.0 : k == 4 ? 0x1p-130 : random_number(operand, i, k);
    });
  }
}

TEST_F(unit_product, batches_accumulation_and_alpha_match_the_reference) {
  const array a = array::random({3, 33, 50}, dtype::bf16, 1), b = array::random({3, 50, 40}, dtype::bf16, 2),
              same = array::random({40, 50}, dtype::bf16, 3);
  for (const bool one : {false, true})
    for (const dtype result : {dtype::bf16, dtype::f32}) {
      const attributes t = op::matmul::constants{.format = result, .operands = 2, .alpha = one ? 1 : 0.5};
      std::vector<array> out;
      out.push_back(array::random({3, 33, 40}, result, 4));
      op_case c({a.v, one ? same.transposed() : b.v}, std::move(out), t);
      c.accumulate = result == dtype::f32;
      const auto wanted = c.run<cpu::kernel<op::matmul, precision::bf16, kernels::reference>>(nullptr);
      for (const int threads : {1, 2, 3, 5}) {
        const auto given = c.run<imitated>(&pool_of(threads));
        for (std::int64_t i = 0; i < wanted[0].count(); ++i)  // sum |a b| < 50: one unit in the last place of bf16, and 16 u of the sum
          ASSERT_NEAR(wanted[0].at(i), given[0].at(i), 50 * 0x1p-20 + (result == dtype::bf16 ? 0x1p-7 * std::fabs(wanted[0].at(i)) : 0));
      }
    }
}
TEST_F(unit_product, fused_bodies_work_on_finished_cells) {
  using precision::bf16;
  for (auto [M, N, K] : {std::array{101, 300, 40}, {300, 100, 64}, {32, 64, 800}}) {
    const array a = array::random({M, K}, dtype::bf16, 1), b = array::random({K, N}, dtype::bf16, 2),
                turned = array::random({N, K}, dtype::bf16, 2), bias = array::random({N}, dtype::bf16, 3),
                residual = array::random({M, N}, dtype::bf16, 4);
    for (const bool turn : {false, true}) {
      const attributes t = op::matmul::constants{.format = dtype::bf16, .operands = 2};
      op_case c({a.v, turn ? turned.transposed() : b.v, bias.v, residual.v}, {}, t);
      c.out.push_back(array({M, N}, dtype::bf16));
      c.out.push_back(array({M, N}, dtype::bf16));
      c.body = {instruct<kernel_of<op::add, bf16, kernels::native>>(dtype::bf16, {isotope::gemm_result, 2}, 1),
                instruct<kernel_of<op::gelu_tanh, bf16, kernels::native>>(dtype::bf16, {max_inputs}),
                instruct<kernel_of<op::add, bf16, kernels::native>>(dtype::bf16, {max_inputs + 1, 3}, 0)};
      const auto wanted = c.run<cpu::kernel<op::matmul, bf16, kernels::reference>>(nullptr), given = c.run<imitated>(&pool_of(1));
      for (std::size_t k = 0; k < 2; ++k) {
        for (std::int64_t i = 0; i < wanted[k].count();
             ++i)  // the matmul and each instruction may be rounded to bf16 in the other direction
          ASSERT_NEAR(wanted[k].at(i), given[k].at(i), 0x1p-6 * std::fabs(wanted[k].at(i)) + 0x1p-6);
        for (const int threads : {2, 3}) ASSERT_EQ(given[k].bytes, c.run<imitated>(&pool_of(threads))[k].bytes);
      }
    }
  }
}

TEST_F(unit_product, a_unit_that_multiplies_wrongly_is_found) {
  const operands o{40, 40, 64};
  EXPECT_EQ("", (broken_contract<imitated>(o, random_number)));
  EXPECT_NE("", (broken_contract<product_with<unit_fault::loses_a_product>>(o, random_number)));
  EXPECT_NE("", (broken_contract<product_with<unit_fault::adds_a_tile_once_more>>(o, random_number)));
}

using rounded = matmul<precision::f32, imitated_unit<>>;
/// The part of that kernel that multiplies by a unit with a fault.
template <unit_fault Fault> struct rounded_with {
  static std::int64_t scratch(const step_shapes& s) { return rounded::scratch(s); }
  static void run(const cpu::launch& l) {
    if constexpr (rounded::byte_tiles) {
      const cpu::portable::matmul_shape s(l);
      const cpu::portable::gemm_epilogue finish(l, s);
      cpu::native::a8_tile_gemm<cpu::native::a8_unit_product<imitated_unit<Fault>>>(l, s, finish).run();
    }
  }
};

/// A weight (N, K) in blocks of many sizes, as the right operand (K, N).
struct weight_in_blocks {
  std::vector<std::byte> bytes;
  cpu::view v;

  weight_in_blocks(dtype t, std::int64_t N, std::int64_t K) : bytes(std::size_t(quantized::bytes_of(t, N, K))) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < N * K; ++i) x.push_back(std::ldexp(float(random_number(1, i / K, i % K)), int(i / 32 % 7) - 3));
    for (std::int64_t i = 0; i < N; ++i) quantized::store(t, x.data() + i * K, i * K, K, K, bytes.data());
    v.dims = {K, N};
    v.strides = {1, K};
    v.type = t;
    v.data = bytes.data();
  }
  /// The same in bf16.
  array rounded() const {
    array w({v.dims[1], v.dims[0]}, dtype::bf16);
    for (std::int64_t n = 0; n < v.dims[1]; ++n)
      for (std::int64_t k = 0; k < v.dims[0]; ++k) w.set(n * v.dims[0] + k, quantized::element(v.type, bytes.data(), v.dims[0], n, k));
    return w;
  }
};
/// With bias and gelu_erf, which products of some sizes finish in registers; N and K of whole panels and tiles, and others; cells of several tasks; a scale that
/// is infinite, and activations that a unit takes for zero. Any NaN is as good as another.
template <class Kernel> void weights_in_blocks_have_the_bits_of_their_elements() {
  using precision::bf16;
  for (const dtype type : {dtype::q8_0, dtype::q4_0})
    for (auto [M, N, K] : {std::array{1, 32, 64}, {37, 37, 96}, {70, 64, 96}, {130, 32, 832}}) {
      weight_in_blocks w(type, N, K);
      array x = array::random({M, K}, dtype::bf16, 1);
      const array bias = array::random({N}, dtype::bf16, 3);
      if (M == 70) w.bytes[4] = std::byte(0), w.bytes[5] = std::byte(0x7c);
      if (M == 130)
        for (std::int64_t k = 0; k < K; ++k) x.set(17 * K + k, 0x1p-130);
      const array dense = w.rounded();
      const attributes t = op::matmul::constants{.format = dtype::bf16, .operands = 2, .batch_invariant = true};
      const auto of = [&](const cpu::view& right, int threads) {
        op_case c({x.v, right, bias.v}, {}, t);
        c.out.push_back(array({M, N}, dtype::bf16));
        c.body = {instruct<kernel_of<op::add, bf16, kernels::native>>(dtype::bf16, {isotope::gemm_result, 2}),
                  instruct<kernel_of<op::gelu_erf, bf16, kernels::native>>(dtype::bf16, {max_inputs}, 0)};
        std::vector<float> y;
        const auto out = c.run<Kernel>(&pool_of(threads));
        for (std::int64_t i = 0; i < M * N; ++i) y.push_back(std::isnan(out[0].at(i)) ? 12345.0f : float(out[0].at(i)));
        return y;
      };
      const auto wanted = of(dense.transposed(), 1);
      for (const int threads : {1, 2, 3}) ASSERT_EQ(wanted, of(w.v, threads)) << name_of(type) << ' ' << M << ' ' << N << ' ' << K;
    }
}
TEST_F(unit_product, weights_in_blocks_have_the_bits_of_their_elements_in_bf16) {
  weights_in_blocks_have_the_bits_of_their_elements<imitated>();
}
/// The first element of x w, with w in either format, that has other bits than the portable kernel's; empty: none. Any NaN is as good as another.
template <class Kernel>
std::string other_bits(const cpu::view& x, std::int64_t N, double alpha = 1, void (*change)(dtype, std::byte*, float) = nullptr,
                       float scale = 0) {
  for (const dtype type : {dtype::q8_0, dtype::q4_0}) {
    weight_in_blocks w(type, N, x.dims[-1]);
    if (change != nullptr) change(type, w.bytes.data(), scale);
    const attributes t = op::matmul::constants{.format = dtype::f32, .operands = 2, .alpha = alpha, .a8 = true};
    shape y = x.dims;
    y.d[std::size_t(y.rank - 1)] = N;
    std::vector<array> out;
    out.emplace_back(y, dtype::f32);
    const op_case c({x, w.v}, std::move(out), t);
    const auto wanted = c.run<cpu::kernel<op::matmul, precision::f32, kernels::portable>>(&pool_of(1));
    for (const int threads : {1, 2, 3}) {
      const auto given = c.run<Kernel>(&pool_of(threads));
      for (std::int64_t i = 0; i < y.count(); ++i) {
        const auto a = float(wanted[0].at(i)), b = float(given[0].at(i));
        if (std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) continue;
        std::ostringstream broken;
        broken << (type == dtype::q8_0 ? "q8_0" : "q4_0") << ", " << threads << " threads: element " << i << " is " << b << ", not " << a;
        return broken.str();
      }
    }
  }
  return {};
}
template <class Kernel> void rounded_products_have_the_bits_of_the_portable_kernel() {
  // Tiles with fewer rows and columns, several cells, more rows than are rounded at once, and more blocks than are added before the others.
  for (auto [M, N, K] : {std::array{4, 16, 32}, {7, 37, 64}, {16, 5, 96}, {133, 150, 96}, {515, 20, 32}, {17, 33, 2144}, {20, 48, 2048}}) {
    const array x = array::random({M, K}, dtype::f32, 1), across = array::random({K, M}, dtype::f32, 2);
    EXPECT_EQ("", other_bits<Kernel>(x.v, N)) << M << ' ' << N << ' ' << K;
    EXPECT_EQ("", other_bits<Kernel>(across.transposed(), N)) << M << ' ' << N << ' ' << K;
  }
  array x = array::random({40, 96}, dtype::f32, 3);
  for (int j = 0; j < 32; ++j) x.set(3 * 96 + j, 0), x.set(5 * 96 + 32 + j, 0x1p127 * (j % 3 - 1));
  for (int j = 0; j < 96; ++j) x.set(4 * 96 + j, 0x1p-140 * (j % 32 - 16));
  x.set(9 * 96 + 40, INFINITY);
  x.set(20 * 96 + 95, NAN);
  EXPECT_EQ("", other_bits<Kernel>(x.v, 37, 0.5));
  cpu::view batches = x.v;  // rows of a batch lie between those of the others
  batches.dims = {4, 10, 96};
  batches.strides = {96, 4 * 96, 1};
  EXPECT_EQ("", other_bits<Kernel>(batches, 37));
}
/// A block of a weight whose scale is infinite or NaN gives NaN, one of zeros with a negative scale adds +0.
template <class Kernel> void scales_at_the_edge_keep_the_bits() {
  const array x = array::random({17, 96}, dtype::f32, 7);
  for (const float scale : {INFINITY, NAN, -INFINITY, -0.0f, -0x1p-24f, 0x1p-24f, 65504.0f}) {
    const auto change = [](dtype type, std::byte* records, float to) {  // the scale of row 3 of the second block of the second panel
      const auto half = float16(to);
      std::memcpy(records + 4 * quantized::record_bytes(type) + 2 * 3, &half, sizeof half);
    };
    EXPECT_EQ("", other_bits<Kernel>(x.v, 37, 1, change, scale)) << scale;
  }
}
TEST_F(unit_product, scales_of_weights_at_the_edge_keep_the_bits) {
  scales_at_the_edge_keep_the_bits<rounded>();
  scales_at_the_edge_keep_the_bits<kernel_of<op::matmul, precision::f32, kernels::native>>();
}
TEST_F(unit_product, rounded_products_keep_the_bits) { rounded_products_have_the_bits_of_the_portable_kernel<rounded>(); }
/// Products of a few rows by functions for panels: by vectors of 32 bytes, or of 64, of so many panels at once.
template <int Streams> struct few_rows {
  static std::int64_t scratch(const step_shapes& s) { return rounded::scratch(s); }
  static void run(const cpu::launch& l) {
    const cpu::portable::matmul_shape s(l);
    const cpu::portable::gemm_epilogue finish(l, s);
    if constexpr (Streams == 0 && config::has_byte_products) cpu::portable::a8_gemm(l, s, finish, cpu::native::a8_panels).run();
    else if constexpr (rounded::byte_dots) cpu::portable::a8_gemm(l, s, finish, cpu::native::a8_dot_panels<larger_of(1, Streams)>).run();
    else cpu::portable::a8_gemm(l, s, finish, cpu::portable::plain_a8_panels).run();
  }

 private:
  static constexpr int larger_of(int a, int b) { return a > b ? a : b; }
};
template <class Kernel> void few_rows_have_the_bits_of_the_portable_kernel() {
  for (auto [M, N, K] : {std::array{1, 16, 32}, {1, 150, 96}, {1, 37, 2144}, {2, 5, 64}, {3, 37, 2144}}) {
    const array x = array::random({M, K}, dtype::f32, 1);
    EXPECT_EQ("", other_bits<Kernel>(x.v, N)) << M << ' ' << N << ' ' << K;
  }
  array x = array::random({3, 96}, dtype::f32, 3);
  for (int j = 0; j < 32; ++j) x.set(96 + j, 0), x.set(2 * 96 + 32 + j, 0x1p127 * (j % 3 - 1));
  x.set(40, INFINITY);
  EXPECT_EQ("", other_bits<Kernel>(x.v, 37, 0.5));
}
TEST_F(unit_product, few_rounded_rows_keep_the_bits) {
  few_rows_have_the_bits_of_the_portable_kernel<few_rows<0>>();
  few_rows_have_the_bits_of_the_portable_kernel<few_rows<1>>();
  few_rows_have_the_bits_of_the_portable_kernel<few_rows<4>>();
}
TEST_F(unit_product, a_unit_that_multiplies_bytes_wrongly_is_found) {
  const array x = array::random({16, 64}, dtype::f32, 1);
  EXPECT_EQ("", other_bits<rounded_with<unit_fault::none>>(x.v, 32));
  EXPECT_NE("", other_bits<rounded_with<unit_fault::loses_a_product>>(x.v, 32));
  EXPECT_NE("", other_bits<rounded_with<unit_fault::adds_a_tile_once_more>>(x.v, 32));
}
/// Rounds 16 rows of a block and expects the codes and scales of quantized::round_activations.
template <dtype Type, class T = float> void rounds_as_defined(const std::vector<float>& numbers, std::int64_t rows) {
  if constexpr (rounded::byte_tiles) {
    constexpr bool dots = config::has_byte_dots;
    const std::vector<T> x(numbers.begin(), numbers.end());
    cpu::native::a8_row_tile t;
    cpu::native::a8_round_rows<Type, dots, T>::round(x.data(), quantized::block, 1, rows, 1, &t);
    for (std::int64_t r = 0; r < 16; ++r) {
      const auto wanted = r < rows ? quantized::round_activations(x.data() + r * quantized::block) : quantized::rounded_block{};
      ASSERT_TRUE(std::isnan(wanted.scale) ? std::isnan(t.scale[r]) : wanted.scale == t.scale[r]) << r;
      for (int j = 0; j < 32; ++j)
        ASSERT_EQ(int(wanted.code[j]), int(t.code[r][cpu::native::a8_tile_order::place(Type, j)])) << r << ' ' << j << ' ' << rows;
      if (dots) {
        const int sum = std::accumulate(wanted.code, wanted.code + 32, 0);
        ASSERT_EQ(std::bit_cast<std::int32_t>(0x1.8p23f) - cpu::native::a8_tile_order::excess(Type) * sum, t.offset[r]) << r;
      }
    }
  }
}
TEST_F(unit_product, rows_are_rounded_as_defined_beside_halves_of_a_step) {
  for (int round = 0; round < 400; ++round) {
    std::vector<float> x(16 * 32);
    for (int i = 0; i < 16 * 32; ++i) {
      const float most = std::ldexp(1 + float(i / 32) * 0x1p-5f + float(round) * 0x1p-12f, round % 60 - 30);
      const float half = (float(int(254 * random_number(round, i / 32, i % 32)) / 2) + 0.5f) * (most / 127);  // within an ulp or so
      x[std::size_t(i)] = i % 32 == round % 32 ? most : i % 3 == 0 ? half : std::nextafter(half, i % 3 == 1 ? 0.0f : most);
    }
    if (round % 8 == 1) x[40] = round % 16 == 1 ? INFINITY : NAN;
    if (round % 8 == 2) std::fill_n(x.data() + 64, 32, 0.0f);
    if (round % 8 == 3)
      for (int j = 0; j < 32; ++j) x[std::size_t(96 + j)] = float(12 * j - 190) * 0x1p-149f;
    rounds_as_defined<dtype::q8_0>(x, 16);
    rounds_as_defined<dtype::q8_0, bfloat16>(x, 16);
    rounds_as_defined<dtype::q4_0>(x, round % 5 == 0 ? 1 + round % 16 : 16);
  }
}

TEST(matrix_unit, a_refusal_says_why) {
  if (!cpu::tiles_refused().empty()) {
    EXPECT_NE(std::string_view::npos, cpu::tiles_refused().find("amx"));
  } else {
    EXPECT_TRUE(cpu::tile_features_here().tile && cpu::tile_features_here().bf16);
  }
}
/// The instructions give the same bits as their emulation after the manual.
TEST(matrix_unit, gives_the_bits_of_its_emulation) {
  if constexpr (!matmul<precision::bf16>::tiles) {
    GTEST_SKIP() << "not compiled for a processor with AMX";
  } else if (!matrix_unit::permitted()) {
    GTEST_SKIP() << cpu::tiles_refused();
  } else {
    for (auto [M, N, K] : {std::array{33, 40, 65}, {64, 96, 800}})
      for (const double scale : {1.0, 0x1p-62}) {
        const auto element = [=](int operand, std::int64_t i, std::int64_t k) {
          return scale * random_number(operand, i, k) * (k % 3 == 0 ? 0x1p20 : k % 3 == 1 ? 0x1p-20 : 1);
        };
        const matrix a(M, K, 0, false, [&](std::int64_t i, std::int64_t k) { return element(0, i, k); });
        const matrix b(K, N, 0, true, [&](std::int64_t k, std::int64_t j) { return element(1, j, k); });
        const attributes t = op::matmul::constants{.format = dtype::f32, .operands = 2};
        std::vector<array> out;
        out.emplace_back(shape{M, N}, dtype::f32);
        const op_case c({a.v, b.v}, std::move(out), t);
        EXPECT_EQ(c.run<imitated>(&pool_of(1))[0].bytes, c.run<matmul<precision::bf16>>(&pool_of(1))[0].bytes);
      }
  }
}
/// On the matrix unit, or without it by what the processor has.
TEST(matrix_unit, weights_in_blocks_have_the_bits_of_their_elements_in_bf16) {
  weights_in_blocks_have_the_bits_of_their_elements<kernel_of<op::matmul, precision::bf16, kernels::native>>();
}
/// On the matrix unit, if the processor has one for bytes.
TEST(matrix_unit, rounded_products_of_the_native_kernel_keep_the_bits) {
  rounded_products_have_the_bits_of_the_portable_kernel<kernel_of<op::matmul, precision::f32, kernels::native>>();
}
}  // namespace unit_product_test
