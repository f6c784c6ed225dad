// labels: library slow
/// The overhead of the harness for small cases, relative to generating their numbers and computing their references, which is unavoidable. Both are measured
/// as processor time in one process, in alternation.
#include <isotope/conform/executor_of.hpp>
#include <isotope/conform/library_specs.hpp>
#include <isotope/conform/run.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

namespace isotope::conform {
namespace cost_test {

/// The limit on the ratio. Measured: 2.9, and 10 if each case is a batch of its own.
constexpr double most = 6;

selection small_cases() { return {{find_spec("relu")}, dtype::f32, strength::full, 20, 1}; }  // 8,000 cases of 680 elements on average

class reference_alone final : public case_visitor {
 public:
  double sum = 0;
  bool visit(test_case&& c) override {
    if (c.in.size() != 1 || c.kind == case_kind::refusal || c.in[0].dims.count() > 4096) return true;
    const std::array in{operand_numbers(c, 0)};
    const call asked{in, c.attr, c.scalars, {dtype::f32, false, nullptr, c.of->policy}};
    std::array<answer, 1> y;
    c.of->reference(asked, y);
    for (const double v : y[0].value) sum += v;
    return true;
  }
};
double seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }
double seconds_of_references() {
  const double from = seconds();
  reference_alone all;
  for_each_case(small_cases(), all);
  EXPECT_NE(all.sum, 0);
  return seconds() - from;
}
double seconds_of_run(executor& on, std::int64_t batch) {
  run_options o;
  o.cases = small_cases();
  o.batch = batch;
  silent_progress heard;
  const double from = seconds();
  const auto t = conformance_run(on, std::move(o), heard).run();
  EXPECT_TRUE(t.ok() && t->failed() == 0 && t->total().passed > 7000);
  return seconds() - from;
}

TEST(conform_cost, small_cases_take_a_few_times_their_references_and_many_times_where_each_is_a_batch) {
  auto device = executor_of<target<backend::cpu, precision::f32, kernels::portable>>::open({.threads = 1});
  ASSERT_TRUE(device.ok());
  double references = 1e9, together = 1e9;
  for (int round = 0; round < 3; ++round) {
    references = std::min(references, seconds_of_references());
    together = std::min(together, seconds_of_run(**device, usual_batch));
  }
  std::printf("%.3f s of references, %.3f s of the run: %.2f\n", references, together, together / references);
  EXPECT_LT(together, most * references);
  // Planning, loading and judging each case separately must exceed the limit.
  EXPECT_GT(seconds_of_run(**device, 1), most * references);
}

}  // namespace cost_test
}  // namespace isotope::conform
