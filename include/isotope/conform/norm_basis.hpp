#pragma once
/// What the specifications of normalisations share.
#include "../op/layer_norm.hpp"
#include "../plan/column_sums.hpp"
#include "reduction_axes.hpp"
#include "spec.hpp"

namespace isotope::conform {

/// The operands of Grad on those of Op, the first of which is x; dy is the result of Op.
template <class Op> constexpr std::vector<std::int32_t> operands_of_gradient(std::span<const tensor<tape>> x, const attributes& a) {
  std::vector<std::int32_t> in;
  for (const auto& v : x) in.push_back(v.id);
  const auto y = x[0].machine->apply(rules<Op>, in, a, place::current());
  for (std::size_t k = 1; k < x.size(); ++k) in.push_back(y.out[k]);
  in.push_back(y.out[0]);
  return in;
}
/// The law of a gradient with an addend: its dx has the bits of x / 2 + dx, where dx is that of the gradient without addend.
template <class Op, class Grad> constexpr law::sides sums_of_gradients(std::span<const tensor<tape>> x, const attributes& a) {
  tape& t = *x[0].machine;
  auto in = operands_of_gradient<Op>(x, a);
  const auto dx = [&] { return tensor<tape>{&t, t.apply(rules<Grad>, in, a, place::current()).out[0]}; };
  const auto addend = scale(x[0], 0.5), apart = addend + dx();
  if (!t.takes_addend(info<Grad>)) return {apart, apart};
  in.push_back(addend.id);
  return {dx(), apart};
}
/// The law of column sums: those that the kernel of the gradient gives, where it can, agree with a separate sum of dx. Its dx includes the addend x / 2
/// where the kernel takes one.
template <class Op, class Grad> constexpr law::sides column_sums_of_gradients(std::span<const tensor<tape>> x, const attributes& a) {
  tape& t = *x[0].machine;
  auto in = operands_of_gradient<Op>(x, a);
  if (t.takes_addend(info<Grad>)) in.push_back(scale(x[0], 0.5).id);
  const auto sums = [&] {
    const tensor<tape> dx{&t, t.apply(rules<Grad>, in, a, place::current()).out[0]};
    return apply<op::sum>(place::current(), op::sum::constants{.axes = 1, .format = accum_of(t.program())}, dx);
  };
  const auto joined = sums();
  if (t.ok()) join_column_sums(t.g, t.kernels);
  return {joined, sums()};
}
/// How far the sides of that law may be apart: both round sums of the same numbers. Spec is that of Op.
template <class Spec, std::size_t Inputs> void column_sums_slack(const call& c, answer& right) {
  std::array<answer, Inputs> y, dx;
  Spec::reference(c, y);
  array dy(c.in[0].dims, c.in[0].type);
  dy.at = y[0].value;
  Spec::gradient(c, {&dy, 1}, dx);
  const double off = 2 * (sum_roundings(double(c.in[0].dims.rows())) + 8) * c.on.u();
  const std::size_t C = right.slack.size();
  for (std::size_t i = 0; i < dx[0].value.size(); ++i)  // an element is rounded twice, and computed from a rounded dy
    right.slack[i % C] += off * ((1 + 8 * c.on.stored()) * std::fabs(dx[0].value[i]) + dx[0].slack[i] + std::fabs(c.in[0].at[i]));
}

struct norm_basis : spec_basis {
  static constexpr std::array fields{attribute_field{"epsilon", attribute_kind::number, 0, 1e-5}};
  static constexpr numeric_policy policy{.sums = "fixed blocks and a tree, in f32; two passes", .nan = "in, then its row"};
  static constexpr std::array boundary{0.0, 100.0, 4096.0, infinity, nan};
  static attributes with(double epsilon) { return op::layer_norm::constants{.epsilon = epsilon}; }  // those of rms_norm, too
  /// Widths around subgroups and workgroups. `more` adds the operands after x. Fast runs have few of them, and other cases on these: drivers on the
  /// processor compile the kernels of each.
  template <class More> static void shapes(case_sink& s, More&& more) {
    const bool fast = s.how() == strength::fast;
    const auto add = [&](operand_recipe x, double epsilon, bool gradient = true) { s.add(more(std::move(x)), with(epsilon), gradient); };
    const auto width = [&](std::int64_t n, std::int64_t of_few) { return fast ? of_few : n; };
    for (const std::int64_t n : {1, 2, 7, 31, 32, 33, 64, 255, 256, 257, 768, 1024, 1025, 2048})
      if (!fast || n == 1 || n == 7 || n == 33 || n == 64 || n == 256 || n == 257 || n == 2048) add(s.x({5, n}), 1e-5);
    for (const std::int64_t rows : {0, 1, 2, 63, 130, 517}) add(s.x({rows, 24}), 1e-5, rows > 0);
    add(s.x({3, 4, 5, width(16, 24)}), 1e-5);
    add(s.x({9, width(96, 24)}), 1e-2);
    add(s.x({16, width(768, 256)}, 100, 3, &generator_of<generators::normal>), 1e-5);
    add(s.x({16, width(300, 257)}, 0, 1, &generator_of<generators::normal>), 1e-5);
    add(s.x({4, width(40, 24)}, 3, 3, &generator_of<generators::constant>), 1e-5);
    add(ordered(s.x({12, width(20, 24)}), {1, 0}), 1e-5);
    add(s.x({24, 24}, 0, 0, &generator_of<generators::specials>), 1e-5, false);
    for (int k = 0; k < s.repeats(); ++k) add(s.x({s.size(k, 0, 1, 40), width(s.size(k, 1, 2, 200), 24)}), 1e-5);
    auto wrong = more(s.x({3, 8}));
    wrong[1].dims = {7};
    s.put({.kind = case_kind::refusal, .attr = with(1e-5), .in = wrong});
  }
  /// Adds cases of the law number `number`, that of an addend or of column sums: rows of whole blocks, and others.
  template <class More> static void sum_cases(case_sink& s, std::int32_t number, More&& more) {
    for (const std::int64_t n : {24, 33, 257}) s.put({.kind = case_kind::law, .law = number, .attr = with(1e-5), .in = more(s.x({19, n}))});
  }
};

}  // namespace isotope::conform
