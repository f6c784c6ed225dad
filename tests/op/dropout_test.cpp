#include "harness.hpp"

namespace isotope::op_test {
namespace dropout_test {

class dropout : public op_test {};
INSTANTIATE_TEST_SUITE_P(, dropout, everywhere(), target_name);

attributes probability(double p) { return op::dropout::constants{.p = p}; }
settings stream(std::uint64_t seed, std::uint64_t counter, std::uint32_t ordinal) {
  settings s;
  s.scalars.seed = seed;
  s.scalars.counter = counter;
  s.ordinal = ordinal;
  return s;
}

TEST_P(dropout, the_mask_is_the_documented_function_of_seed_step_stream_and_element) {
  const auto& here = *this;
  for (std::int64_t n : {0, 1, 3, 4, 5, 64, 1031}) {
    const host x = random({n}, here.type, 1, 1, 2);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto words = philox4x32({std::uint32_t(i / 4), 0, 77, 5}, {0x89abcdef, 0x01234567});
      expected.push_back(double(words[std::size_t(i % 4)]) / 4294967296.0 >= 0.3 ? x[i] / 0.7 : 0);
    }
    EXPECT_TRUE(
        near(here.run<op::dropout>({x}, probability(0.3), stream(0x0123456789abcdef, 77, 5)).at(0), expected, here.roundings(3) * 3));
  }
}
// A device of a mesh has runs of elements whose numbers, among those of all devices, have gaps between them.
TEST_P(dropout, elements_of_one_device_are_dropped_by_their_numbers_among_those_of_all) {
  const auto& here = *this;
  if (!kernel<op::dropout>().counts_all_elements) GTEST_SKIP() << "this backend has no plans for several devices";
  for (const auto& [first, run, stride] : std::initializer_list<std::array<std::int64_t, 3>>{
           {96, 0, 0}, {9, 0, 0}, {std::int64_t(1) << 40, 0, 0}, {8, 8, 24}, {4, 4, 12}, {1008, 48, 96}, {6, 6, 18}, {3, 1, 2}}) {
    const host x = random({96}, here.type, 1, 1, 2);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 96; ++i) {
      const std::int64_t number = run == 0 ? first + i : first + i / run * stride + i % run;
      const auto words = philox4x32({std::uint32_t(number / 4), std::uint32_t(number / 4 >> 32), 77, 5}, {0x89abcdef, 0x01234567});
      expected.push_back(double(words[std::size_t(number % 4)]) / 4294967296.0 >= 0.3 ? x[i] / 0.7 : 0);
    }
    const attributes a = op::dropout::constants{.p = 0.3, .first = first, .run = run, .stride = stride};
    EXPECT_TRUE(near(here.run<op::dropout>({x}, a, stream(0x0123456789abcdef, 77, 5)).at(0), expected, here.roundings(3) * 3))
        << first << ' ' << run << ' ' << stride;
  }
}
TEST_P(dropout, the_share_of_zeros_is_p) {
  const auto& here = *this;
  const host x = full({10000}, here.type, 1);
  double zeros = 0;
  const auto y = here.run<op::dropout>({x}, probability(0.25), stream(1, 2, 3));
  for (double v : y.at(0).at) zeros += v == 0 ? 1 : 0;
  EXPECT_NEAR(zeros, 2500, 5 * std::sqrt(10000 * 0.25 * 0.75));  // five standard deviations of a binomial count
}
TEST_P(dropout, seed_step_and_stream_each_change_the_mask) {
  const auto& here = *this;
  const host x = full({256}, here.type, 1);
  const auto mask = [&](const settings& s) { return here.run<op::dropout>({x}, probability(0.5), s).at(0).at; };
  EXPECT_EQ(mask(stream(1, 1, 1)), mask(stream(1, 1, 1)));
  for (const auto& s : {stream(2, 1, 1), stream(1, 2, 1), stream(1, 1, 2), stream(1ull << 32, 1, 1)})
    EXPECT_NE(mask(stream(1, 1, 1)), mask(s));
}
TEST_P(dropout, a_dropped_nan_or_infinity_is_zero_and_p_zero_is_the_identity) {
  const auto& here = *this;
  const host x = full({64}, here.type, nan);
  int zeros = 0, nans = 0;
  const auto y = here.run<op::dropout>({x}, probability(0.5), stream(1, 2, 3));
  for (double v : y.at(0).at) {
    zeros += v == 0 ? 1 : 0;
    nans += std::isnan(v) ? 1 : 0;
  }
  EXPECT_EQ(zeros + nans, 64);
  EXPECT_GT(zeros, 0);
  const host z = random({9}, here.type, 1);
  EXPECT_TRUE(same(here.run<op::dropout>({z}, probability(0)).at(0), z.at));
}

}  // namespace dropout_test
}  // namespace isotope::op_test
