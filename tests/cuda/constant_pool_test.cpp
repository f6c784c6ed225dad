/// The constant pool of a plan needs as much memory as one set of sizes, regardless of how many sizes the plan is run with.
#include "../plan/outcome.hpp"

#include <isotope/op/all.hpp>
#include <isotope/train/batch.hpp>

using namespace plan_test;

namespace constant_pool_test {

constexpr int limit = 1000;

/// rope has a table that grows with the sequence: 4 S D bytes.
struct rotated {
  isotope::dim positions;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return rope(s.input("x", {1, positions, 1, 8}));
  }
};

template <class T> struct constant_pool : testing::Test {};
TYPED_TEST_SUITE(constant_pool, every_target, target_name);

TYPED_TEST(constant_pool, does_not_grow_with_the_sizes_that_a_plan_was_run_with) {
  using E = typename TypeParam::precision::storage;
  const auto planned = [](isotope::dim n) { return *isotope::plan_inference<TypeParam>(rotated{n}); };
  auto s = loaded<TypeParam>(planned(isotope::scalar_dim{limit, 0}));
  auto x = scalars();
  x.sizes[0] = limit;
  s.run(x, isotope::phase_always);
  const auto most = s.measured_bytes();
  for (int n = 1; n <= limit; ++n) {
    x.sizes[0] = n;
    s.run(x, isotope::phase_always);
    ASSERT_LE(s.measured_bytes(), most) << n;
  }
  ASSERT_TRUE(s.status().ok()) << s.status().error().line();
  for (const int n : {1, 300, 7}) {
    auto fixed = loaded<TypeParam>(planned(n));
    fixed.run(scalars(), isotope::phase_always);
    const auto want = *fixed.template output<E>("output");
    x.sizes[0] = n;
    s.run(x, isotope::phase_always);
    const auto got = s.template output<E>("output")->first(want.size());
    EXPECT_TRUE(std::memcmp(got.data(), want.data(), want.size_bytes()) == 0) << n;
  }
}
TYPED_TEST(constant_pool, two_steps_in_flight_keep_the_tables_of_their_sizes) {
  using E = typename TypeParam::precision::storage;
  auto s = loaded<TypeParam>(*isotope::plan_inference<TypeParam>(rotated{isotope::scalar_dim{limit, 0}}));
  auto x = scalars();
  const auto alone = [&](int n) {
    x.sizes[0] = n;
    s.run(x, isotope::phase_always);
    const auto y = s.template output<E>("output")->first(std::size_t(8 * n));
    return std::vector<E>(y.begin(), y.end());
  };
  const auto small = alone(100), large = alone(900);
  for (int k = 0; k < 4; ++k) {
    x.sizes[0] = k % 2 == 0 ? 900 : 100;
    const auto first = s.submit(isotope::batch{}, x);
    x.sizes[0] = k % 2 == 0 ? 100 : 900;
    const auto second = s.submit(isotope::batch{}, x);
    const auto& want = k % 2 == 0 ? small : large;
    EXPECT_TRUE(std::memcmp(s.template output<E>("output")->data(), want.data(), want.size() * sizeof(E)) == 0) << k;
    s.collect(first);
    s.collect(second);
  }
}

TEST(constant_pool_chunks, one_chunk_holds_what_was_held_before) {
  auto& d = isotope::cuda_test::test_device();
  isotope::cuda::constant_pool m(d.context);
  const std::int64_t words = isotope::cuda::constant_pool::chunk / 4;
  const auto fill = [&](std::int64_t tables, std::int64_t length) {
    for (std::int64_t k = 0; k < tables; ++k) {
      const std::vector<std::uint32_t> table(static_cast<std::size_t>(length), static_cast<std::uint32_t>(k));
      const auto bytes = std::as_bytes(std::span(table));
      ASSERT_NE(m.keep(bytes), 0u);
      ASSERT_EQ(m.keep(bytes), m.keep(bytes)) << "equal bytes are kept once";
    }
  };
  fill(3, words);
  const auto held = m.bytes();
  EXPECT_EQ(held, 3 * 4 * words);
  m.clear();
  fill(1, 16);
  const auto allocations = d.context->counters.allocations.load();
  for (int k = 0; k < 100; ++k) {
    m.clear();
    fill(3 + k % 2, words / (1 + k % 2));
  }
  EXPECT_EQ(m.bytes(), held);
  EXPECT_EQ(d.context->counters.allocations, allocations);
  EXPECT_EQ(m.error().what, "");
}

}  // namespace constant_pool_test
