// Compares prod and its gradient with the reference kernels; the bits must be the same on any number of threads.
#include "compare.hpp"

namespace prod_test {
using namespace isotope_test;
using precision::bf16;
using precision::f32;

std::vector<array> outputs(array&& a) {
  std::vector<array> r;
  r.push_back(std::move(a));
  return r;
}
/// The error relative to the results: n roundings in f32, and one to bf16.
template <class P> double tolerance(double n) { return (n + 2) * 0x1p-24 + (P::type == dtype::bf16 ? 0x1p-8 : 0); }

template <class P> void over(const shape& s, std::int64_t mask) {
  SCOPED_TRACE(testing::Message() << s[0] << ' ' << s[1] << ", axes " << mask);
  const array x = array::random(s, P::type, 1, 1 - 0x1p-7, 1 + 0x1p-7);
  op::prod::constants a{.axes = mask};
  shape y;
  for (int k = 0; k < s.rank; ++k)
    if (((mask >> k) & 1) == 0) y.push(s[k]);
  expect_matches<op::prod, P>({{x.v}, outputs(array(y, P::type)), a}, {tolerance<P>(double(s.count()))});
  a.axes = (mask & 1) << 1 | mask >> 1;
  expect_matches<op::prod, P>({{x.transposed()}, outputs(array(y, P::type)), a}, {tolerance<P>(double(s.count()))});
}
TEST(prod, matches_the_reference_over_any_axes) {
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{3, 70}, {70, 3}, {300, 1000}, {2, 40000}, {40000, 2}})
    for (const std::int64_t mask : {1, 2, 3}) {
      over<f32>({rows, n}, mask);
      over<bf16>({rows, n}, mask);
    }
}
template <class P> void gradient(std::int64_t rows, std::int64_t n) {
  const array x = array::random({rows, n}, P::type, 1, 1 - 0x1p-7, 1 + 0x1p-7), dy = array::random({rows}, P::type, 2);
  expect_matches<op::prod_grad, P>({{x.v, dy.v}, outputs(array({rows, n}, P::type))}, {tolerance<P>(double(n))});
}
TEST(prod_grad, matches_the_reference) {
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 70}, {70, 3}, {300, 1000}, {2, 40000}}) {
    gradient<f32>(rows, n);
    gradient<bf16>(rows, n);
  }
}

}  // namespace prod_test
