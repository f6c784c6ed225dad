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
TEST(column_sums, stay_steps_where_nothing_is_fused_or_they_are_not_wanted) {
  EXPECT_EQ(count(planned<target<f32>>(gpt, {.fuse = false})), count(planned<apart<f32>>(gpt, {.fuse = false})));
  EXPECT_EQ(count(planned<target<f32>>(gpt, {.join_sums = false})), count(planned<apart<f32>>(gpt)));
}

/// The gradient of a norm of x as an output, with sums of it.
enum class kind { columns, reshaped, kept, twice, rows, all, narrow, of_y, bf16_sums, changed };
struct summed_gradient {
  kind what;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const std::int64_t C = what == kind::narrow ? 2 : 6;
    const auto x = s.input("x", {4, 3, C}), dy = s.input("dy", {4, 3, C});
    const auto w = s.param("w", {C}, init::ones), b = s.param("b", {C}, init::zeros);
    const auto norm = s.machine->apply(rules<op::layer_norm>, std::array{x.id, w.id, b.id}, {}, place::current());
    const auto g =
        s.machine->apply(rules<layer_norm_grad>, std::array{x.id, w.id, b.id, norm.out[1], norm.out[2], dy.id}, {}, place::current());
    const tensor<M> dx{s.machine, g.out[0]}, made = what == kind::of_y ? tensor<M>{s.machine, norm.out[0]} : dx;
    const auto of = [&](tensor<M> v, std::int64_t axes, bool keep = false, dtype t = dtype::f32) {
      const auto y = apply<sum>(place::current(), sum::constants{.axes = axes, .keep = keep, .format = t}, v);
      return reshape(y, {y.dims().count()});
    };
    switch (what) {
      case kind::reshaped: return of(reshape(dx, {12, C}), 1) * 2;
      case kind::kept: return of(dx, 3, true) * 2;
      case kind::twice: return of(dx, 3) + of(reshape(dx, {12, C}), 1);
      case kind::rows: return of(dx, 4) * 2;
      case kind::all: return of(dx, 7) * 2;
      case kind::bf16_sums: return of(dx, 3, false, dtype::bf16) * 2;
      case kind::changed: return of(transpose(reshape(dx, {12, C})), 1) * 2;
      default: return of(made, 3) * 2;
    }
  }
};
TEST(column_sums, join_where_they_are_over_all_axes_but_the_last) {
  const auto joined = [](kind k) {
    const auto g = isotope::traced_inference<target<f32>>(summed_gradient{k});
    EXPECT_EQ(g.error.view(), "");
    EXPECT_EQ(isotope::trace_fault(g, "column_sums").view(), "");
    int n = 0;
    for (const auto& x : g.nodes) n += !x.dead && x.summed >= 0;
    return n;
  };
  EXPECT_EQ(joined(kind::columns), 1);
  EXPECT_EQ(joined(kind::reshaped), 1);
  EXPECT_EQ(joined(kind::kept), 1);
  EXPECT_EQ(joined(kind::twice), 1) << "a step has one such output";
  EXPECT_EQ(joined(kind::rows), 0) << "over the last axis";
  EXPECT_EQ(joined(kind::all), 0) << "over every axis";
  EXPECT_EQ(joined(kind::changed), 0) << "of the transposed tensor";
  EXPECT_EQ(joined(kind::narrow), 0) << "the kernel cannot";
  EXPECT_EQ(joined(kind::of_y), 0) << "the kernel of layer_norm never can";
  EXPECT_EQ(joined(kind::bf16_sums), 0) << "the result is rounded";
}
TEST(column_sums, are_named_in_the_text_of_a_trace_and_have_the_values_of_separate_sums) {
  const summed_gradient model{kind::columns};
  EXPECT_NE(isotope::trace_text(isotope::traced_inference<target<f32>>(model)).find(", sums the columns of %"), std::string::npos);
  const auto y = [&]<class T>(T) {
    auto s = loaded<T>(*isotope::plan_inference<T>(model));
    s.run(scalars());
    const auto out = *s.template output<float>("output");
    return std::vector<float>(out.begin(), out.end());
  };
  EXPECT_TRUE(same_bits(y(target<f32>{}), y(apart<f32>{})));
}
TEST(column_sums, are_checked_by_the_verifier) {
  auto g = isotope::traced_inference<target<f32>>(summed_gradient{kind::columns});
  for (auto& n : g.nodes) {
    if (n.summed < 0) continue;
    for (const int wrong : {1, 3, 4}) {
      n.summed = std::int8_t(wrong);
      EXPECT_NE(isotope::trace_fault(g, "a mistake").view().find("sums the columns of output"), std::string::npos) << wrong;
    }
    n.summed = -1;
    EXPECT_NE(isotope::trace_fault(g, "a mistake").view().find("makes 4 tensors where its shape rule gives 3"), std::string::npos);
  }
}

}  // namespace column_sums_test
