/// Sums over all axes but the last become outputs of the steps that make their operands, where the kernels of these steps can give them.
#include <isotope/plan/column_sums.hpp>
#include <isotope/plan/report/trace.hpp>
#include <isotope/plan/verify.hpp>

#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace column_sums_test {

using isotope::info, isotope::op::layer_norm_grad, isotope::op::sum;

/// A kernel of the library that also gives the column sums of its first result, by the library's own sum.
template <class Op, class P, class Set> struct summing : isotope::cpu::kernel<Op, P, Set> {
  static constexpr bool column_sums(const isotope::step_shapes& s, std::span<const isotope::micro_op> body, int summed) {
    const bool wide = s.out[std::size_t(summed)].axis(-1).size > 2;  // of narrower ones it says that it cannot
    if constexpr (std::is_same_v<Op, layer_norm_grad>) return wide && summed == 0;
    else return wide && body.size() == 1 && body[0].op == &info<isotope::op::gelu_tanh_grad> && body[0].store == summed;
  }
  static void run(const isotope::cpu::launch& l) {
    isotope::cpu::kernel<Op, P, Set>::run(l);
    if (l.column_sums != nullptr) add_columns(l);
  }
  static void add_columns(const isotope::cpu::launch& l) {
    const auto& x = l.out[std::size_t(l.summed)];
    const isotope::attributes attr = sum::constants{.axes = (std::int64_t(1) << (x.dims.rank - 1)) - 1, .format = P::accum_type};
    isotope::cpu::launch s = l;
    s.in = {&x, 1};
    s.out = {l.column_sums, 1};
    s.attr = &attr;
    s.body = {};
    isotope::cpu::kernel<sum, P, isotope::kernels::reference>::run(s);
  }
};
template <class P>
using target = isotope::target<isotope::backend::cpu, P, isotope::kernels::reference,
                               boost::mp11::mp_list<summing<layer_norm_grad, P, isotope::kernels::reference>,
                                                    summing<isotope::op::matmul, P, isotope::kernels::reference>>>;
template <class P> using apart = on_cpu<P, isotope::kernels::reference>;
using f32 = isotope::precision::f32;
using bf16 = isotope::precision::bf16;

/// Steps that give column sums, and sums of their own.
struct counts {
  int joined = 0, separate = 0;
  friend bool operator==(const counts&, const counts&) = default;
};
counts count(const isotope::plan_view& p) {
  counts c;
  for (const auto& s : p.steps) {
    c.joined += s.summed >= 0;
    c.separate += s.op == &info<sum>;
  }
  return c;
}
const isotope::model::gpt_loss_of gpt{{3, 2, 16, 11, 6}, 2, 5};

TEST(column_sums, of_a_gpt_are_given_by_norms_with_the_bits_of_separate_steps) {
  const auto check = []<class P>(P, const isotope::training_options& o) {
    const auto joined = planned<target<P>>(gpt, o), separate = planned<apart<P>>(gpt, o);
    const auto with = count(joined), without = count(separate);
    EXPECT_EQ(with.joined, 9) << "of the linear layers of each block, a norm follows two, and gelu one";
    EXPECT_EQ(with.joined + with.separate, without.separate);
    EXPECT_EQ(without.joined, 0);
    EXPECT_EQ(joined.steps.size() + 9, separate.steps.size());
    EXPECT_EQ(difference(step<target<P>>(joined), step<apart<P>>(separate)), "");
    EXPECT_EQ(isotope::trace_fault(isotope::traced_training<target<P>>(gpt, o), "column_sums").view(), "");
  };
  for (const bool micro : {false, true}) {
    check(f32{}, {.accumulate = micro});
    check(bf16{}, {.accumulate = micro});
  }
  check(bf16{}, {.clip = isotope::clipping::none, .update = isotope::update_policy::within_backward});
  check(f32{}, {.recompute = isotope::recompute::all});
}
TEST(column_sums, stay_steps_in_plans_that_fuse_nothing) {
  EXPECT_EQ(count(planned<target<f32>>(gpt, {.fuse = false})), count(planned<apart<f32>>(gpt, {.fuse = false})));
}

}  // namespace column_sums_test
