// labels: nightly
// 40,000,001 elements, which are more than one dimension of a launch can count and not a multiple of any tile. Values are periodic, so a tensor of one
// period gives the expected value of every element.
#include "harness.hpp"

namespace isotope::op_test {
namespace many_elements_nightly_test {

class many_elements_nightly : public op_test {};
INSTANTIATE_TEST_SUITE_P(, many_elements_nightly, everywhere(), target_name);

constexpr std::int64_t period = 4099, count = 40'000'001;

host repeated(const host& x) {
  host y = full({count}, x.type, 0);
  for (std::int64_t i = 0; i < count; ++i) y.at[std::size_t(i)] = x[i % period];
  return y;
}
/// The first element of y that differs by more than `bound` from the same element of its period; -1: none.
std::int64_t first_apart(const host& y, const host& x, double bound) {
  if (y.dims.count() != count || x.dims.count() != period) return 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (!(std::fabs(y[i] - x[i % period]) <= bound)) return i;
  return -1;
}

TEST_P(many_elements_nightly, of_an_element_wise_op_are_all_written) {
  const auto& here = *this;
  const host a = random({period}, here.type, 1), b = random({period}, here.type, 2);
  EXPECT_EQ(first_apart(here.run<op::add>({repeated(a), repeated(b)}).at(0), here.run<op::add>({a, b}).at(0), 0), -1);
}
TEST_P(many_elements_nightly, of_a_gradient_are_summed_and_clipped) {
  const auto& here = *this;
  const host g = random({period}, here.accum, 1, -3, 3), all = repeated(g);
  double sum = 0;
  for (double v : all.at) sum += v * v;
  const double norm = std::sqrt(sum);
  EXPECT_TRUE(near(here.run<op::global_norm>({all}).at(0), {norm}, double(count) * 0x1p-52 * norm));
  settings s;
  s.scalars.clip_norm = float(norm / 4);
  const double factor = double(s.scalars.clip_norm) / (norm + 1e-6);
  host clipped = g;
  for (double& v : clipped.at) v *= factor;
  EXPECT_EQ(first_apart(here.run<op::clip_norm>({all}, {}, s).at(0), clipped, 3 * 4 * roundoff(here.accum)), -1);
}
TEST_P(many_elements_nightly, of_weights_are_updated_by_adamw) {
  const auto& here = *this;
  const host w = random({period}, here.accum, 1), m = random({period}, here.accum, 2), v = random({period}, here.accum, 3, 0, 1),
             g = random({period}, here.accum, 4), one({}, here.accum, {1});
  settings s;
  s.scalars.learning_rate = 0.01f;
  s.scalars.weight_decay = 0.1f;
  s.scalars.optimizer_step = 3;
  op::adamw::constants a{.decaying = count, .rate_scale = 0};  // weight decay applies to all of them
  const auto y = here.run<op::adamw>({repeated(w), repeated(m), repeated(v), repeated(g), one, one}, a, s);
  a.decaying = period;
  const auto x = here.run<op::adamw>({w, m, v, g, one, one}, a, s);
  // The last elements of a kernel may be computed by other code, with other roundings.
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(first_apart(y.at(k), x.at(k), 12 * 2 * roundoff(here.accum)), -1) << k;
}

}  // namespace many_elements_nightly_test
}  // namespace isotope::op_test
