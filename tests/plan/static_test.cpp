#include "outcome.hpp"

#include <isotope/model/all.hpp>

using namespace plan_test;

namespace static_test {

constexpr isotope::training_options options{.recompute = isotope::recompute::every(2)};
constexpr isotope::model::gpt size{2, 2, 8, 7, 4, 0.1};
using program = isotope::training<isotope::model::gpt_loss<size, 2, 3>, reference_f32, options>;  // the sizes are template arguments

void expect_same(const isotope::operand& a, const isotope::operand& b) {
  EXPECT_EQ(a.at, b.at);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_TRUE(a.dims == b.dims);
  EXPECT_EQ(a.strides, b.strides);
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.region, b.region);
}
void expect_same(const isotope::step& a, const isotope::step& b) {
  EXPECT_EQ(a.op, b.op);
  EXPECT_TRUE(a.attr == b.attr);
  EXPECT_EQ(a.scratch, b.scratch);
  EXPECT_EQ(a.scratch_bytes, b.scratch_bytes);
  EXPECT_EQ(a.kernel, b.kernel);
  EXPECT_EQ(a.operands, b.operands);
  EXPECT_EQ(a.body, b.body);
  EXPECT_EQ(a.block, b.block);
  EXPECT_EQ(a.ordinal, b.ordinal);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.body_size, b.body_size);
  EXPECT_EQ(a.phases, b.phases);
  EXPECT_EQ(a.accumulate, b.accumulate);
}
void expect_same(const isotope::micro_op& a, const isotope::micro_op& b) {
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.arg, b.arg);
  EXPECT_EQ(a.store, b.store);
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.scalar, b.scalar);
}
void expect_same(const isotope::slot& a, const isotope::slot& b) {
  EXPECT_EQ(a.path.view(), b.path.view());
  EXPECT_TRUE(a.dims == b.dims);
  EXPECT_EQ(a.at, b.at);
  EXPECT_EQ(a.grad, b.grad);
  EXPECT_TRUE(a.init == b.init);
  EXPECT_EQ(a.pieces.along, b.pieces.along);
  EXPECT_EQ(a.pieces.parts, b.pieces.parts);
  EXPECT_EQ(a.decay, b.decay);
  EXPECT_EQ(a.trained, b.trained);
}
void expect_same(const isotope::port& a, const isotope::port& b) {
  EXPECT_EQ(a.label.view(), b.label.view());
  expect_same(a.where, b.where);
}
template <class E> void expect_same(std::span<const E> a, std::span<const E> b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i]);
}

TEST(static_plan, has_the_tables_of_the_plan_made_at_run_time) {
  const auto dynamic = planned<reference_f32>(isotope::model::gpt_loss_of{size, 2, 3}, options);
  const isotope::plan_view a = program::view(), b = dynamic;
  expect_same(a.steps, b.steps);
  expect_same(a.operands, b.operands);
  expect_same(a.micro_ops, b.micro_ops);
  expect_same(a.slots, b.slots);
  expect_same(a.inputs, b.inputs);
  expect_same(a.outputs, b.outputs);
  EXPECT_EQ(a.totals.region, b.totals.region);
  EXPECT_EQ(a.totals.bytes, b.totals.bytes);
  EXPECT_EQ(a.totals.lower_bound, b.totals.lower_bound);
  EXPECT_EQ(a.totals.parameters, b.totals.parameters);
  EXPECT_EQ(a.totals.trained, b.totals.trained);
  EXPECT_EQ(a.totals.moments, b.totals.moments);
  EXPECT_EQ(a.totals.program, b.totals.program);
}

TEST(static_plan, gives_the_bits_of_the_plan_made_at_run_time) {
  const auto device = isotope::device<reference_f32>::open({.threads = 1});
  ASSERT_TRUE(device.ok());
  auto s = device->load<program>();
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  fill_inputs(*s);
  EXPECT_EQ(difference(step(*s), step<reference_f32>(planned<reference_f32>(isotope::model::gpt_loss_of{size, 2, 3}, options))), "");
}

static_assert(program::parameters == parameter_count(size));
static_assert(program::bytes > 0 && program::bytes < 1 << 20);

}  // namespace static_test
