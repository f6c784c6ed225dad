#include <isotope/kernels/cpu/native/adamw.hpp>

#include "bf16_contract.hpp"
#include "imitated_unit.hpp"

#include <vector>

/// Pre-packed copies of weights: matmul kernels pack and read them, and optimiser kernels update them.
namespace packed_weight_test {
using namespace isotope_test;
using cpu::native::matmul;
using cpu::native::packed_weight;
using unit = imitated_unit<>;

/// An emulated matrix unit that the system refuses. Matmuls by bf16 pairs then read the same packed panels.
struct refused_unit : unit {
  using unit::unit;
  static bool permitted() { return false; }
};

/// The packed copy of a weight, between guard elements that must not change.
struct packed_copy {
  static constexpr std::int64_t margin = 64;
  array room;

  explicit packed_copy(std::int64_t elements) : room({elements + 2 * margin}, dtype::bf16, 77) {}
  bfloat16* data() { return room.v.as<bfloat16>() + margin; }
  bool margins_kept() {
    for (std::int64_t i = 0; i < margin; ++i)
      if (float(data()[-1 - i]) != 77 || float(data()[room.count() - 2 * margin + i]) != 77) return false;
    return true;
  }
};

/// A matmul that first packs its right operand, which must have no gaps between rows, and gives the kernel only the packed copy.
template <class Unit> struct by_packed : matmul<precision::bf16, Unit> {
  using base = matmul<precision::bf16, Unit>;
  static void run(const cpu::launch& given) {
    if constexpr (base::tiles) {
      cpu::launch l = given;
      const cpu::view& b = given.in[1];
      ASSERT_TRUE(b.strides[1] == 1 && b.strides[0] == b.dims[1]);
      packed_copy copy(packed_weight(b.dims[0], b.dims[1]).elements());
      base::pack(b, copy.data(), given.pool == nullptr ? &pool_of(1) : given.pool);
      ASSERT_TRUE(copy.margins_kept());
      std::vector<cpu::view> in(given.in.begin(), given.in.end());
      in[1].data = copy.data();
      attributes t = *given.attr;
      op::matmul::pack(t);
      l.in = in;
      l.attr = &t;
      base::run(l);
    }
  }
};

/// A matmul whose right operand is the transpose of a weight without gaps between rows, which it first packs; the kernel gets only the packed copy.
template <class Unit> struct by_packed_transpose : matmul<precision::bf16, Unit> {
  using base = matmul<precision::bf16, Unit>;
  static void run(const cpu::launch& given) {
    if constexpr (base::tiles) {
      cpu::launch l = given;
      cpu::view w = given.in[1];
      ASSERT_TRUE(w.strides[0] == 1 && w.strides[1] == w.dims[0]);
      std::swap(w.dims.d[0], w.dims.d[1]);
      w.strides = {w.dims[1], 1};
      const std::vector<shape> dims{given.in[0].dims, given.in[1].dims}, result{given.out[0].dims};
      packed_copy copy(base::packed_transposed({dims, result, given.attr}));
      base::pack_transposed(w, copy.data(), given.pool == nullptr ? &pool_of(1) : given.pool);
      ASSERT_TRUE(copy.margins_kept());
      std::vector<cpu::view> in(given.in.begin(), given.in.end());
      in[1].data = copy.data();
      attributes t = *given.attr;
      op::matmul::pack(t);
      l.in = in;
      l.attr = &t;
      base::run(l);
    }
  }
};

/// Passes rows to the packed copy, as an update does.
template <class T> void take(const packed_weight& of, const T* x, std::int64_t first, std::int64_t end, void* packed) {
  cpu::native::exponents found;
  of.take(x, first, end, packed, false, found);
  packed_weight::note(packed, found);
}

class packed_weights : public testing::Test {
  void SetUp() override {
    if (!matmul<precision::bf16, unit>::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};

TEST_F(packed_weights, of_weights_in_blocks_are_those_of_their_elements_in_bf16) {
  using packing = matmul<precision::bf16, unit>;
  if constexpr (packing::tiles) {
    for (const dtype type : {dtype::q8_0, dtype::q4_0})
      for (const auto [N, K] : {std::array<std::int64_t, 2>{37, 96}, {64, 64}, {16, 32}}) {
        const array x = array::random({N, K}, dtype::f32, 1);
        std::vector<std::byte> bytes(std::size_t(quantized::bytes_of(type, N, K)));
        quantized::store(type, x.v.as<const float>(), 0, N * K, K, bytes.data());
        array dense({N, K}, dtype::bf16);
        for (std::int64_t i = 0; i < N * K; ++i) dense.set(i, quantized::element(type, bytes.data(), K, i / K, i % K));
        cpu::view blocks = dense.v;
        blocks.type = type, blocks.data = bytes.data();
        packed_copy of_dense(packed_weight(K, N).elements()), of_blocks(packed_weight(K, N).elements());
        packing::pack_transposed(dense.v, of_dense.data(), &pool_of(1));
        packing::pack_transposed(blocks, of_blocks.data(), &pool_of(2));
        EXPECT_EQ(of_dense.room.bytes, of_blocks.room.bytes) << name_of(type) << ' ' << N << ' ' << K;
      }
  }
}
TEST_F(packed_weights, lie_in_panels_of_pairs_of_rows) {
  for (const auto [K, N] : {std::array<std::int64_t, 2>{3, 5}, {32, 32}, {33, 49}, {64, 80}, {50, 17}}) {
    const array w = array::random({K, N}, dtype::bf16, 1), wide = [&] {
      array x({K, N}, dtype::f32);
      for (std::int64_t i = 0; i < w.count(); ++i) x.set(i, w.at(i));
      return x;
    }();
    const packed_weight of(K, N);
    const std::int64_t steps = (K + 31) / 32 * 16, columns = (N + 15) / 16 * 16;
    ASSERT_EQ(of.elements(), 32 + 2 * steps * columns);
    packed_copy whole(of.elements()), parts(of.elements());
    packed_weight::forget(whole.data());
    packed_weight::forget(parts.data());
    take(of, w.v.as<const bfloat16>(), 0, K, whole.data());
    for (std::int64_t first = 0; first < K; first += 6)
      take(of, wide.v.as<const float>() + first * N, first, std::min<std::int64_t>(K, first + 6), parts.data());
    EXPECT_EQ(whole.room.bytes, parts.room.bytes);
    EXPECT_TRUE(whole.margins_kept());
    int least = 512, largest = 0;
    for (std::int64_t i = 0; i < w.count(); ++i) {
      const int e = w.v.as<const bfloat16>()[i].bits >> 7 & 255;
      least = w.at(i) != 0 && e < least ? e : least;
      largest = e > largest ? e : largest;
    }
    EXPECT_EQ(packed_weight::least(whole.data()), least);
    EXPECT_EQ(packed_weight::largest(whole.data()), largest);
    for (std::int64_t k = 0; k < 2 * steps; ++k)
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t panel = j / 32 * 32, width = std::min<std::int64_t>(32, columns - panel);
        const float given = float(whole.data()[2 * (16 + panel * steps + k / 2 * width + j - panel) + k % 2]);
        ASSERT_EQ(given, k < K && j < N ? float(w.at(k * N + j)) : 0.0f) << k << ' ' << j;
      }
  }
}

template <class Unit, class F> void keep_the_contract(const F& element) {
  for (const auto [M, N, K] : {std::array<std::int64_t, 3>{5, 17, 31},
                               {33, 40, 50},
                               {24, 300, 800},
                               {64, 96, 128},
                               {600, 48, 64},
                               {33, 31, 7713},
                               {80, 70, 832},
                               {80, 64, 832},
                               {41, 64, 1600}})
    for (const int order : {0, 1}) {
      ASSERT_EQ("", (broken_contract<by_packed<Unit>>({M, N, K, order}, element)));
      ASSERT_EQ("", (broken_contract<by_packed_transpose<Unit>>({M, N, K, order + 2}, element)));
    }
}
/// Products with a bias, and GELU or a residual, have the same bits with a packed copy, which finishes some bodies in registers.
template <class Unit> void finish_bodies() {
  using set = std::conditional_t<cpu::native::available, kernels::native, kernels::portable>;
  using add = kernel_of<op::add, precision::bf16, set>;
  constexpr int result = isotope::gemm_result, first = max_inputs;
  const auto step = [](std::vector<int> args, int store) { return instruct<add>(dtype::bf16, std::move(args), store); };
  const std::vector<std::vector<cpu::instruction>> bodies = {
      {},
      {step({result, 2}, 0)},
      {step({2, result}, -1), step({first, 3}, 0)},
      {step({result, 2}, -1), instruct<kernel_of<op::gelu_erf, precision::bf16, set>>(dtype::bf16, {first}, 0)},
      {step({result, 2}, -1), instruct<kernel_of<op::gelu_tanh, precision::bf16, set>>(dtype::bf16, {first}, 0)},
      {step({result, 3}, 0)}};
  for (const auto [M, N, K] :
       {std::array<std::int64_t, 3>{1, 32, 32}, {24, 64, 96}, {50, 96, 800}, {290, 32, 64}, {80, 64, 1536}, {48, 32, 3104}})
    for (const double tiny : {1.0, 0x1p-68}) {
      const auto element = [&](int operand, std::int64_t i, std::int64_t k) {
        if (operand == 2 && i % 4 == 3) return -13.0;  // GELU is subnormal there
        return random_number(operand, i, k) * (operand < 2 && i % 3 == 0 ? tiny : operand == 2 ? tiny * tiny : 1);
      };
      const matrix a(M, K, 0, false, [&](std::int64_t i, std::int64_t k) { return element(0, i, k); });
      const matrix b(K, N, 0, true, [&](std::int64_t k, std::int64_t j) { return element(1, j, k); });
      const matrix bias(1, N, 0, false, [&](std::int64_t, std::int64_t j) { return element(2, j, 0); });
      array row({N}, dtype::bf16);
      for (std::int64_t j = 0; j < N; ++j) row.set(j, bias.at(0, j));
      const array x = array::random({M, N}, dtype::bf16, 4);
      for (const auto& body : bodies) {
        std::vector<array> out;
        out.emplace_back(shape{M, N}, dtype::bf16, 7);
        op_case c({a.v, b.v, row.v, x.v}, std::move(out),
                  op::matmul::constants{.format = dtype::bf16, .operands = 2, .batch_invariant = true});
        c.body = body;
        const auto wanted = c.run<matmul<precision::bf16, Unit>>(&pool_of(1));
        for (const int threads : {1, 3})
          ASSERT_EQ(wanted[0].bytes, c.run<by_packed_transpose<Unit>>(&pool_of(threads))[0].bytes) << M << ' ' << K << ' ' << tiny;
      }
    }
}
TEST_F(packed_weights, finish_bodies_with_the_same_bits) { finish_bodies<unit>(); }
TEST_F(packed_weights, finish_bodies_with_the_same_bits_where_the_system_refuses_the_unit) {
  if (!config::has_bf16_pairs) GTEST_SKIP() << "needs a build with instructions for bf16 pairs";
  finish_bodies<refused_unit>();
}
/// The copy of a weight's transpose is that of the transposed matrix.
TEST_F(packed_weights, of_transposes_have_one_layout) {
  if constexpr (matmul<precision::bf16, unit>::tiles)
    for (const auto [K, N] : {std::array<std::int64_t, 2>{3, 5}, {32, 32}, {33, 49}, {64, 80}, {50, 17}}) {
      const array w = array::random({N, K}, dtype::bf16, 1);
      array turned({K, N}, dtype::bf16);
      for (std::int64_t i = 0; i < w.count(); ++i) turned.set(i % K * N + i / K, w.at(i));
      const packed_weight of(K, N);
      packed_copy given(of.elements()), wanted(of.elements());
      matmul<precision::bf16, unit>::pack_transposed(w.v, given.data(), &pool_of(2));
      matmul<precision::bf16, unit>::pack(turned.v, wanted.data(), &pool_of(1));
      EXPECT_EQ(given.room.bytes, wanted.room.bytes) << K << ' ' << N;
    }
}
TEST_F(packed_weights, keep_the_contract_of_products) { keep_the_contract<unit>(random_number); }
TEST_F(packed_weights, lose_no_small_numbers) {
  keep_the_contract<unit>([](int operand, std::int64_t i, std::int64_t k) {
    return random_number(operand, i, k) * (i % 4 == 0 ? 0x1p-130 : i % 4 == 1 ? 0x1p-60 : i % 4 == 2 ? 0x1p60 : 1);
  });
}
TEST_F(packed_weights, keep_the_contract_where_the_system_refuses_the_unit) {
  if (!config::has_bf16_pairs) GTEST_SKIP() << "needs a build with instructions for bf16 pairs";
  keep_the_contract<refused_unit>(random_number);
}
TEST_F(packed_weights, of_wrong_products_are_found) {
  using wrong = imitated_unit<unit_fault::loses_a_product>;
  EXPECT_NE("", (broken_contract<by_packed<wrong>>({40, 40, 64}, random_number)));
  EXPECT_NE("", (broken_contract<by_packed_transpose<wrong>>({40, 40, 64, 2}, random_number)));
}

/// Memory that is aligned to a cache line, as in an arena.
class lines {
 public:
  explicit lines(std::int64_t elements) : room_(std::size_t(elements) + 32) {}
  bfloat16* data() { return reinterpret_cast<bfloat16*>((reinterpret_cast<std::uintptr_t>(room_.data()) + 63) / 64 * 64); }

 private:
  std::vector<bfloat16> room_;
};
/// The first difference between the results of AdamW with and without a packed copy; empty: none.
std::string difference_by_packing(std::int64_t K, std::int64_t N, std::int64_t decaying, bool streams, int threads) {
  const std::int64_t n = K * N;
  const array g = array::random({n}, dtype::f32, 4), norm({1}, dtype::f32, 1), loss({1}, dtype::f32, 1);
  const packed_weight of(K, N);
  lines packed(of.elements()), wanted(of.elements());
  const auto run = [&](bool packs, lines& shadow) {
    std::vector<array> x;
    x.push_back(array::random({n}, dtype::f32, 1));
    x.push_back(array::random({n}, dtype::f32, 2));
    x.push_back(array::random({n}, dtype::f32, 3, 0, 1));
    call c;
    for (const auto& a : x) c.out.push_back(a.v);
    const auto part = [](bfloat16* data, std::int64_t elements) {
      return cpu::view{data, {elements}, dense_strides(shape{elements}), dtype::bf16};
    };
    c.out.push_back(part(shadow.data(), n));
    if (packs) c.out.push_back(part(packed.data(), of.elements()));
    c.in = c.out;
    for (const auto* a : {&g, &norm, &loss}) c.in.push_back(a->v);
    c.attr = op::adamw::constants{
        .decaying = decaying, .shadow = true, .columns = packs ? N : 0, .written = streams ? std::int64_t(1) << 40 : 0};
    c.scalars.learning_rate = 0.1f;
    c.scalars.weight_decay = 0.5f;
    c.scalars.optimizer_step = 1;
    c.run<cpu::native::adamw>(&pool_of(threads));
    return x;
  };
  lines shadow(n), shadow_of_packed(n);
  const auto plain = run(false, shadow), with = run(true, shadow_of_packed);
  for (std::size_t k = 0; k < plain.size(); ++k)
    if (plain[k].bytes != with[k].bytes) return "operand " + std::to_string(k);
  for (std::int64_t i = 0; i < n; ++i)
    if (shadow.data()[i].bits != shadow_of_packed.data()[i].bits) return "rounded weight " + std::to_string(i);
  packed_weight::forget(wanted.data());
  take(of, shadow.data(), 0, K, wanted.data());
  for (std::int64_t i = 0; i < of.elements(); ++i)
    if (packed.data()[i].bits != wanted.data()[i].bits) return "element " + std::to_string(i) + " of the copy";
  return {};
}
TEST_F(packed_weights, are_kept_by_adamw) {
  for (const auto [K, N] : {std::array<std::int64_t, 2>{1, 40}, {7, 33}, {64, 64}, {333, 96}, {40, 9024}})
    for (const std::int64_t decaying : {std::int64_t(0), K * N, 5 * N / 2, 4 * N})
      for (const bool streams : {false, true})
        for (const int threads : {1, 2, 3})
          ASSERT_EQ("", difference_by_packing(K, N, std::min(decaying, K * N), streams, threads)) << K << ' ' << N << ' ' << decaying;
}
}  // namespace packed_weight_test
