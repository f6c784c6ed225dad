#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace iso = isotope;

namespace parameters_test {

template <class P> using target = iso::target<iso::backend::cpu, P, iso::kernels::reference>;

/// y = x w in a program of precision P; x is ones (2,3), and every element of w is set to 0.5 by write.
template <class P> std::vector<float> forward_of_written_parameters() {
  const auto model = []<iso::Machine M>(iso::scope<M> s) { return matmul(s.input("x", {2, 3}), s.param("w", {3, 4})); };
  auto plan = iso::plan_inference<target<P>>(model);
  EXPECT_TRUE(plan) << plan.error().line();
  auto device = iso::device<target<P>>::open({.threads = 1});
  auto session = device->load(*std::move(plan));
  EXPECT_TRUE(session) << session.error().line();
  const auto written = session->write(iso::tensor_kind::parameter, 0, std::vector<float>(12, 0.5f));
  EXPECT_TRUE(written) << written.error().line();
  auto x = session->template input<typename P::storage>("x");
  std::fill(x->begin(), x->end(), typename P::storage(1.0f));
  session->run({}, iso::phase_always);
  auto y = session->template output<typename P::storage>("output");
  std::vector<float> out;
  for (auto v : *y) out.push_back(float(v));
  return out;
}

TEST(parameters, can_be_written_to_an_inference_program_of_every_precision) {
  const std::vector<float> expected(8, 1.5f);  // 3 x 0.5, exact in both formats
  EXPECT_EQ(forward_of_written_parameters<iso::precision::f32>(), expected);
  EXPECT_EQ(forward_of_written_parameters<iso::precision::bf16>(), expected);
}

}  // namespace parameters_test
