// labels: nightly
// Every variant of the attention kernels that fits gives the numbers of the definition, and those that are asked for are taken. A software driver takes minutes to
// compile all tiles.
#include "attention_checks.hpp"

#include <isotope/op/attention_cached.hpp>

namespace isotope::op_test {
namespace attention_variants_nightly_test {

using attention_test::expect_gradient, attention_test::forward_error, attention_test::make, attention_test::sizes;

class attention_variants : public op_test {};
INSTANTIATE_TEST_SUITE_P(, attention_variants, on_native(), target_name);

// Heads of a size that most kernels take, with fewer queries than a tile owns and with more.
constexpr sizes variant_cases[] = {{1, 20, 40, 2, 1, 16, true, false}, {1, 66, 66, 1, 1, 64, true, false}};

TEST_P(attention_variants, all_match_the_definition) {
  const auto& here = *this;
  for (const sizes& z : variant_cases) {
    const auto p = make(here, z);
    const auto expected = attention_by_definition(p);
    const int fitting = for_each_variant([&](kernel_choices& choices) {
      settings s;
      s.choices = &choices;
      const auto y = here.run<op::attention>(p.operands(), p.attr, s);
      EXPECT_TRUE(near(y.at(0), expected.y, forward_error(here, z))) << choices.wanted;
      EXPECT_TRUE(near(y.at(1), expected.lse, forward_error(here, z))) << choices.wanted;
    });
    const int of_gradient = for_each_variant([&](kernel_choices& choices) {
      SCOPED_TRACE(choices.wanted);
      expect_gradient(here, p, &choices);
    });
    RecordProperty("variants", fitting + of_gradient);
  }
}

host places(std::vector<double> x) { return {{std::int64_t(x.size())}, dtype::i32, std::move(x)}; }

class attention_cached_variants : public op_test {};
INSTANTIATE_TEST_SUITE_P(, attention_cached_variants, on_native(), target_name);

/// Each way to divide positions gives the sums of the reference kernel, where heads share keys and where they do not.
TEST_P(attention_cached_variants, all_give_the_same_rows) {
  const auto& here = *this;
  constexpr std::int64_t T = 1100, D = 16, G = 2;
  const host keys = random({2, G, T, D}, here.type, 1), values = random({2, G, T, D}, here.type, 2);
  for (const std::int64_t H : {G, 2 * G}) {
    const host q = random({1, H * D}, here.type, 3);
    const std::vector<host> in = {q, keys, values, places({1}), places({double(T - 1)})};
    host expected;
    const op::attention_cached::constants c{.heads = H};
    for_each_variant([&](kernel_choices& choices) {
      settings s;
      s.choices = &choices;
      const auto y = here.run<op::attention_cached>(in, c, s);
      if (choices.wanted.empty()) expected = y.at(0);
      // Both are sums of up to T terms of weights, and results rounded to the program's format.
      const double unit = here.type == dtype::bf16 ? 0x1p-7 : here.roundings(4.0 * T);
      EXPECT_TRUE(near(y.at(0), expected.at, 2 * unit)) << choices.wanted;
    });
  }
}

}  // namespace attention_variants_nightly_test
}  // namespace isotope::op_test
