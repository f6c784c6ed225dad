#include <isotope/kernels/cpu/native/adamw.hpp>

#include "bf16_contract.hpp"
#include "imitated_unit.hpp"

#include <vector>

/// Weights in the order in which products read them: packed by the product's kernel, kept by the optimiser's.
namespace {
using namespace isotope_test;
using cpu::native::matmul;
using cpu::native::packed_weight;
using unit = imitated_unit<>;

/// An imitation that the system refuses: products by pairs read the same panels.
struct refused_unit : unit {
  static bool permitted() { return false; }
};

/// The packed copy of a weight, between elements that must stay as they are.
struct packed_copy {
  static constexpr std::int64_t margin = 64;
  array room;

  explicit packed_copy(std::int64_t elements) : room({elements + 2 * margin}, dtype::bf16, 77) {}
  cpu::view elements() {
    cpu::view v = room.v;
    v.data = data();
    v.dims = {room.count() - 2 * margin};
    return v;
  }
  bfloat16* data() { return reinterpret_cast<bfloat16*>(first()) + margin; }
  bool margins_kept() {
    for (std::int64_t i = 0; i < margin; ++i)
      if (float(data()[-1 - i]) != 77 || float(data()[room.count() - 2 * margin + i]) != 77) return false;
    return true;
  }

 private:
  void* first() { return room.bytes.data(); }
};

/// A product that packs a right operand whose rows lie in memory without gaps, and leaves nothing where it lay.
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
      t.i[3] = 1;
      l.in = in;
      l.attr = &t;
      base::run(l);
    }
  }
};

class packed_weights : public testing::Test {
  void SetUp() override {
    if (!matmul<precision::bf16, unit>::tiles) GTEST_SKIP() << "needs a build for AVX-512";
  }
};

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
    of.take(w.v.as<const bfloat16>(), 0, K, whole.data(), false);
    for (std::int64_t first = 0; first < K; first += 6)
      of.take(wide.v.as<const float>() + first * N, first, std::min<std::int64_t>(K, first + 6), parts.data(), false);
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
  for (const auto [M, N, K] :
       {std::array<std::int64_t, 3>{5, 17, 31}, {33, 40, 50}, {24, 300, 800}, {64, 96, 128}, {600, 48, 64}, {33, 31, 7713}})
    for (const int order : {0, 1}) ASSERT_EQ("", (broken_contract<by_packed<Unit>>({M, N, K, order}, element)));
}
TEST_F(packed_weights, keep_the_contract_of_products) { keep_the_contract<unit>(random_number); }
TEST_F(packed_weights, lose_no_small_numbers) {
  keep_the_contract<unit>([](int operand, std::int64_t i, std::int64_t k) {
    return random_number(operand, i, k) * (i % 4 == 0 ? 0x1p-130 : i % 4 == 1 ? 0x1p-60 : i % 4 == 2 ? 0x1p60 : 1);
  });
}
TEST_F(packed_weights, keep_it_where_the_system_refuses_the_unit) {
  if (!config::has_bf16_pairs) GTEST_SKIP() << "such a build has products by pairs";
  keep_the_contract<refused_unit>(random_number);
}
TEST_F(packed_weights, of_wrong_products_are_found) {
  using wrong = imitated_unit<unit_fault::loses_a_product>;
  EXPECT_NE("", (broken_contract<by_packed<wrong>>({40, 40, 64}, random_number)));
}

TEST_F(packed_weights, are_kept_by_adamw) {
  for (const bool streams : {false, true})
    for (const auto [K, N] : {std::array<std::int64_t, 2>{1, 40}, {7, 33}, {64, 64}, {333, 48}, {40, 9000}})
      for (const int threads : {1, 2, 3}) {
        const std::int64_t n = K * N;
        array w = array::random({n}, dtype::f32, 1), m = array::random({n}, dtype::f32, 2), v = array::random({n}, dtype::f32, 3, 0, 1);
        array shadow({n}, dtype::bf16), norm({1}, dtype::f32, 1), loss({1}, dtype::f32, 1);
        const array g = array::random({n}, dtype::f32, 4);
        const packed_weight of(K, N);
        // Vectors that go past the caches are aligned, as in an arena.
        struct aligned {
          explicit aligned(std::int64_t elements) : room(std::size_t(elements) + 32) {}
          bfloat16* data() { return reinterpret_cast<bfloat16*>((reinterpret_cast<std::uintptr_t>(room.data()) + 63) / 64 * 64); }
          std::vector<bfloat16> room;
        } given(of.elements()), wanted(of.elements());
        cpu::view packed = shadow.v;
        packed.data = given.data();
        packed.dims = {of.elements()};
        call c;
        c.out = {w.v, m.v, v.v, shadow.v, packed};
        c.in = {w.v, m.v, v.v, shadow.v, packed, g.v, norm.v, loss.v};
        c.attr.i = {n / 2, 1, 0, N, streams ? std::int64_t(1) << 40 : 0};
        c.attr.f[0] = 1;
        c.scalars.learning_rate = 0.1f;
        c.scalars.optimizer_step = 1;
        c.run<cpu::native::adamw>(&pool_of(threads));
        packed_weight::forget(wanted.data());
        of.take(shadow.v.as<const bfloat16>(), 0, K, wanted.data(), false);
        for (std::int64_t i = 0; i < of.elements(); ++i)
          ASSERT_EQ(given.data()[i].bits, wanted.data()[i].bits) << K << ' ' << N << ' ' << i;
      }
}
}  // namespace
