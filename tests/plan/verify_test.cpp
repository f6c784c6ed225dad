/// The trace verifier accepts correct traces after every pass of the planner, and finds and names each kind of fault.
#include <isotope/plan/verify.hpp>

#include "property.hpp"
#include "random_model.hpp"
#include "random_options.hpp"
#include "targets.hpp"

using namespace plan_test;
using isotope::trace;

namespace verify_test {

template <class T> struct verified_traces : testing::Test {};
TYPED_TEST_SUITE(verified_traces, every_target, target_name);

std::string text_of(const isotope::message& m) { return std::string(m.view()); }

TYPED_TEST(verified_traces, of_random_models_are_sound_after_every_pass) {
  check_property(20261123, 300, 60, [] {
    const auto model = *random_models();
    const auto clip = *rc::gen::element(isotope::clipping::global_norm, isotope::clipping::tensor_norm, isotope::clipping::none);
    auto o = (*random_variants()).options(clip);
    o.decompose_all = *rc::gen::arbitrary<bool>();
    RC_ASSERT(text_of(isotope::plan_detail::trace_training<TypeParam>(model, o, true).error) == "");
    RC_ASSERT(text_of(isotope::plan_detail::trace_inference<TypeParam>(model, o.fuse, o.decompose_all, nullptr, nullptr, true).error) ==
              "");
  });
}

TEST(verified_traces_of_inference, are_sound_with_weights_in_16_bits) {
  const isotope::model::gpt_loss_of gpt{{2, 2, 16, 11, 6, 0.1}, 2, 5};
  for (const auto stored : {&isotope::weights::f16, &isotope::weights::bf16})
    EXPECT_EQ(text_of(isotope::plan_detail::trace_inference<reference_f32>(gpt, true, false, stored, nullptr, true).error), "");
}

/// A loss with matmuls, a fused epilogue, views, an embedding whose gradient is added in place, and a tied table.
struct small_loss {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto ids = s.input("ids", {4}, dtype::i32);
    const auto table = (s / "table").param("weight", {5, 6}, init::normal(1));
    const auto [left, right] = split<2>(embedding(table, ids), -1);
    const auto h = tanh(matmul(left * right, (s / "up").param("weight", {3, 6}, init::normal(1))));
    return mean(square(matmul(h, transpose(table)) * 0.5));
  }
};
using T = on_cpu<isotope::precision::f32, isotope::kernels::portable>;

constexpr isotope::training_options plain{.clip = isotope::clipping::tensor_norm};
constexpr isotope::training_options unfused{.clip = isotope::clipping::tensor_norm, .fuse = false};
constexpr isotope::training_options early{.clip = isotope::clipping::none, .update = isotope::update_policy::within_backward};

static_assert([] {
  const auto g = isotope::plan_detail::trace_training<T>(small_loss{}, plain);
  return g.error.empty() && isotope::trace_fault(g, "fuse").empty();
}());

/// A trace into which a test inserts a fault; nodes are found by the name of their op.
struct victim {
  trace g;
  explicit victim(const isotope::training_options& o) : g(isotope::plan_detail::trace_training<T>(small_loss{}, o)) {
    EXPECT_EQ(text_of(g.error), "");
    EXPECT_EQ(fault(), "");
  }
  /// The k-th node of an op that is not dead; a negative k counts from the end, -1 is the last.
  std::int32_t find(std::string_view op, int k = 0) const {
    std::vector<std::int32_t> found;
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      if (!g.nodes[i].dead && g.nodes[i].op->name == op) found.push_back(std::int32_t(i));
    const auto at = k < 0 ? std::int64_t(found.size()) + k : k;
    if (at >= 0 && at < std::int64_t(found.size())) return found[std::size_t(at)];
    ADD_FAILURE() << "the trace has no such " << op;
    return 0;
  }
  isotope::node& node(std::int32_t i) { return g.nodes[std::size_t(i)]; }
  isotope::value& value(std::int32_t v) { return g.values[std::size_t(v)]; }
  isotope::value& out(std::int32_t i) { return value(node(i).out[0]); }
  std::int32_t parameter(std::string_view path) const {
    for (const auto& p : g.params)
      if (p.path.view() == path) return p.value;
    return -1;
  }
  /// Moves node `from` after node `to`.
  void move_behind(std::int32_t from, std::int32_t to) {
    std::vector<std::int32_t> position(g.nodes.size());
    for (std::int32_t i = 0; i < std::int32_t(position.size()); ++i)
      position[std::size_t(i)] = i == from ? to : i > from && i <= to ? i - 1 : i < from && i > to ? i + 1 : i;
    if (from > to) position[std::size_t(from)] = to + 1, position[std::size_t(to)] = to;
    isotope::plan_detail::reorder(g, position);
  }
  /// Appends a node that copies v.
  std::int32_t append_copy_of(std::int32_t v) {
    isotope::node n;
    n.becomes(isotope::rules<isotope::op::copy>);
    n.in[0] = v;
    n.out[0] = g.add_value(value(v).dims, value(v).type, isotope::value_kind::temp);
    value(n.out[0]).producer = std::int32_t(g.nodes.size());
    g.nodes.push_back(n);
    return value(n.out[0]).producer;
  }
  std::string fault() const { return text_of(isotope::trace_fault(g, "a pass")); }
  /// Expects a fault of this node whose text contains all parts.
  void expect(std::int32_t node_at_fault, const std::vector<std::string>& parts) const {
    const auto said = fault();
    EXPECT_EQ(said.find("after a pass: node " + std::to_string(node_at_fault) + ' '), 0u) << said;
    for (const auto& p : parts) EXPECT_NE(said.find(p), std::string::npos) << said << "\nlacks " << p;
  }
  static std::string tensor(std::int32_t v) { return '%' + std::to_string(v) + ' '; }
};

TEST(trace_verifier, finds_a_result_of_another_shape) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.out(i).dims.set(0, 3);
  t.expect(i, {"matmul makes %", "[3,6] f32 where its shape rule gives [4,6] f32"});
}

TEST(trace_verifier, finds_a_result_of_another_format) {
  victim t(unfused);
  const auto i = t.find("mean");
  t.out(i).type = isotope::dtype::bf16;
  t.expect(i, {"mean makes %", "bf16 where its shape rule gives"});
}

TEST(trace_verifier, finds_operands_that_the_shape_rule_refuses) {
  victim t(unfused);
  const auto i = t.find("matmul");
  std::swap(t.node(i).in[0], t.node(i).in[1]);
  t.expect(i, {"matmul does not fit its shape rule", "inner dimensions differ", "[3,6] vs [4,3]"});
}

TEST(trace_verifier, finds_an_output_too_many) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.node(i).out[1] = t.g.add_value({1}, isotope::dtype::f32, isotope::value_kind::temp);
  t.value(t.node(i).out[1]).producer = i;
  t.expect(i, {"matmul makes 2 tensors where its shape rule gives 1"});
}

TEST(trace_verifier, finds_a_tensor_that_is_not_there) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.node(i).in[1] = std::int32_t(t.g.values.size());
  t.expect(i, {"matmul names the tensor %" + std::to_string(t.g.values.size()) + ", which is not there"});
}

TEST(trace_verifier, finds_a_node_that_reads_what_a_later_one_makes) {
  victim t(unfused);
  const auto i = t.find("matmul"), maker = t.g.values[std::size_t(t.node(i).in[0])].producer;
  const auto v = t.node(i).in[0];
  t.move_behind(maker, i);
  t.expect(i - 1, {"matmul reads " + t.tensor(v) + "[4,3] f32 before node " + std::to_string(i)});
}

TEST(trace_verifier, finds_a_temporary_that_nobody_makes) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.node(i).in[0] = t.g.add_value({4, 3}, isotope::dtype::f32, isotope::value_kind::temp);
  t.expect(i, {"matmul reads " + t.tensor(t.node(i).in[0]), "which no node has written"});
}

TEST(trace_verifier, finds_a_dead_node_that_is_read) {
  victim t(unfused);
  const auto i = t.find("matmul"), maker = t.g.values[std::size_t(t.node(i).in[0])].producer;
  t.node(maker).dead = true;
  t.expect(i, {"matmul reads " + t.tensor(t.node(i).in[0]), "whose producer, node " + std::to_string(maker) + ", is dead"});
}

TEST(trace_verifier, finds_an_output_of_the_program_that_a_dead_node_makes) {
  victim t(unfused);
  const auto v = t.g.outputs[0].value;
  for (auto& n : t.g.nodes)
    for (const auto x : n.in)
      if (x == v) n.dead = true;  // so that only the output reads it
  t.node(t.value(v).producer).dead = true;
  EXPECT_EQ(t.fault().find("after a pass: the program's output reads " + t.tensor(v)), 0u) << t.fault();
}

TEST(trace_verifier, finds_a_value_of_two_producers) {
  victim t(unfused);
  const auto first = t.find("matmul", 0), second = t.find("matmul", 1);
  t.node(second).out[0] = t.node(first).out[0];
  t.expect(second, {"matmul makes " + t.tensor(t.node(first).out[0]), "which node " + std::to_string(first) + " matmul makes, too"});
}

TEST(trace_verifier, finds_a_value_that_names_another_producer) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.out(i).producer = i + 1;
  t.expect(i, {"matmul makes " + t.tensor(t.node(i).out[0]), "whose producer is given as node " + std::to_string(i + 1)});
}

TEST(trace_verifier, finds_a_view_beyond_its_base) {
  victim t(unfused);
  const auto i = t.find("split"), v = t.node(i).out[1];
  t.value(v).offset += 1;
  const auto said = t.fault();
  EXPECT_EQ(said.find("after a pass: " + t.tensor(v) + "[4,3] f32 from element 4 lies outside %"), 0u) << said;
}

TEST(trace_verifier, finds_a_view_that_looks_elsewhere_than_its_op_says) {
  victim t(unfused);
  const auto i = t.find("split"), v = t.node(i).out[1];
  t.value(v).offset -= 1;
  t.expect(i, {"split makes " + t.tensor(v), "which looks elsewhere than its shape rule says"});
}

TEST(trace_verifier, finds_a_view_of_another_format_than_its_base) {
  victim t(plain);
  const auto v = t.parameter("up.weight");
  t.value(v).type = isotope::dtype::bf16;
  const auto said = t.fault();
  EXPECT_EQ(said.find("after a pass: " + t.tensor(v) + "[3,6] bf16 'up.weight' from element "), 0u) << said;
  EXPECT_NE(said.find("has another format than %"), std::string::npos) << said;
}

TEST(trace_verifier, finds_views_of_one_another) {
  victim t(unfused);
  const auto v = t.node(t.find("split")).out[0];
  t.value(t.value(v).base).base = v;
  EXPECT_NE(t.fault().find("is a view of no tensor"), std::string::npos) << t.fault();
}

// embedding_grad adds to the gradient that the matmul with the table has written.

TEST(trace_verifier, finds_a_tensor_that_is_read_after_it_was_overwritten_in_place) {
  victim t({.optimizer = isotope::optimizer_kind::none});
  const auto adds = t.find("embedding_grad"), old = t.node(adds).in[0], copy = t.append_copy_of(old);
  t.expect(copy, {"copy reads " + t.tensor(old), "after node " + std::to_string(adds) + " embedding_grad has overwritten it"});
  t.move_behind(copy, adds - 1);  // a place before embedding_grad is still correct
  EXPECT_EQ(t.fault(), "");
}

TEST(trace_verifier, finds_a_node_that_overwrites_another_operand_of_its_own) {
  victim t(unfused);
  const auto v = t.node(t.find("matmul")).out[0], i = t.append_copy_of(v);
  t.node(i).becomes(isotope::rules<isotope::op::accumulate>);
  t.node(i).in[1] = v;
  t.out(i).base = v;
  t.expect(i, {"accumulate overwrites " + t.tensor(v), "and reads it as " + t.tensor(v)});
}

TEST(trace_verifier, finds_an_in_place_result_that_lies_elsewhere) {
  victim t(unfused);
  const auto i = t.find("embedding_grad");
  t.out(i).base = -1;
  t.expect(i, {"embedding_grad works in place on " + t.tensor(t.node(i).in[0]), "lies elsewhere"});
}

TEST(trace_verifier, finds_an_update_before_the_last_reader_of_its_weight) {
  for (const auto& o : {plain, early}) {
    victim t(o);
    const auto weight = t.parameter("up.weight"), reader = t.append_copy_of(weight);
    t.expect(reader, {"copy reads " + t.tensor(weight) + "[3,6] f32 'up.weight' after node ", "adamw has overwritten it"});
  }
}

TEST(trace_verifier, finds_a_gradient_that_is_made_after_it_was_clipped) {
  victim t(plain);
  std::int32_t last = -1;  // the last node that makes a gradient
  for (std::int32_t i = 0; i < t.find("clip_norm"); ++i)
    if (const auto& n = t.node(i); !n.dead && n.op->inout == 0 && t.value(t.g.root(n.out[0])).kind == isotope::value_kind::grad &&
                                   n.op->kind != isotope::op_kind::view)
      last = i;
  ASSERT_GE(last, 0);
  const auto v = t.node(last).out[0];
  t.move_behind(last, t.find("global_norm"));
  t.expect(t.find("global_norm") + 1, {"makes " + t.tensor(v), " has read it as %"});
}

TEST(trace_verifier, finds_two_gradients_in_one_place) {
  victim t(unfused);
  std::vector<std::int32_t> placed;
  for (std::size_t v = 0; v < t.g.values.size(); ++v)
    if (const auto& x = t.g.values[v]; x.base >= 0 && x.producer >= 0 && !t.node(x.producer).dead && t.node(x.producer).op->inout == 0 &&
                                       t.value(x.base).kind == isotope::value_kind::grad)
      placed.push_back(std::int32_t(v));
  ASSERT_EQ(placed.size(), 2u);
  t.value(placed[0]).offset = t.value(placed[1]).offset;
  EXPECT_NE(t.fault().find(" over %"), std::string::npos) << t.fault();
}

// Fused bodies.

struct body_of_a_trace : testing::Test {
  victim t{plain};
  std::int32_t i = -1;  // a node with a body of at least two instructions
  body_of_a_trace() {
    for (std::int32_t k = 0; k < std::int32_t(t.g.nodes.size()) && i < 0; ++k)
      if (!t.node(k).dead && t.node(k).body_size >= 2) i = k;
  }
  isotope::micro_op& instruction(int k) { return t.g.micro_ops[std::size_t(t.node(i).body + k)]; }
};

TEST_F(body_of_a_trace, names_an_operand_that_is_not_there) {
  ASSERT_GE(i, 0);
  instruction(1).arg[0] = std::int8_t(isotope::max_inputs + 1);  // its own result
  t.expect(i, {"instruction 1 of its body", "has no operand 9"});
}

TEST_F(body_of_a_trace, names_an_instruction_of_another_format) {
  ASSERT_GE(i, 0);
  instruction(0).type = isotope::dtype::bf16;
  t.expect(i, {"instruction 0 of its body", "f32, not [", "bf16"});
}

TEST_F(body_of_a_trace, names_an_output_that_is_not_stored) {
  ASSERT_GE(i, 0);
  for (int k = 0; k < t.node(i).body_size; ++k) instruction(k).store = -1;
  t.expect(i, {"stores nothing in " + t.tensor(t.node(i).out[0])});
}

TEST_F(body_of_a_trace, names_an_output_that_is_stored_twice) {
  ASSERT_GE(i, 0);
  for (int k = 0; k < t.node(i).body_size; ++k) instruction(k).store = 0;
  t.expect(i, {"instruction 1 of its body stores output 0, which another stores"});
}

TEST_F(body_of_a_trace, names_an_instruction_that_is_a_kernel) {
  ASSERT_GE(i, 0);
  instruction(0).op = &isotope::info<isotope::op::matmul>;
  t.expect(i, {"instruction 0 of its body is not element-wise"});
}

TEST_F(body_of_a_trace, names_an_op_that_takes_no_body) {
  ASSERT_GE(i, 0);
  t.node(i).becomes(isotope::rules<isotope::op::copy>);
  t.expect(i, {"has a body, but its op takes none"});
}

TEST_F(body_of_a_trace, names_a_body_outside_the_table) {
  ASSERT_GE(i, 0);
  t.node(i).body = std::int32_t(t.g.micro_ops.size());
  t.expect(i, {"has a body outside the table"});
}

TEST(trace_verifier, finds_an_element_wise_node_without_a_body) {
  victim t(unfused);
  const auto i = t.find("elementwise");
  t.node(i).body_size = 0;
  t.expect(i, {"elementwise has no body"});
}

TEST(trace_verifier, finds_a_node_that_accumulates_what_its_kernel_overwrites) {
  victim t(unfused);
  const auto i = t.find("elementwise");
  t.node(i).accumulate = 1;
  t.expect(i, {"elementwise accumulates outputs that its kernel overwrites"});
}

TEST(trace_verifier, finds_a_node_that_never_runs) {
  victim t(unfused);
  const auto i = t.find("matmul");
  t.node(i).phases = 0;
  t.expect(i, {"matmul runs in no phase"});
}

}  // namespace verify_test
