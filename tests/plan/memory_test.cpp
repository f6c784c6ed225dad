#include "memory_checker.hpp"
#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"
#include "targets.hpp"

using namespace plan_test;
using isotope::value_kind;

namespace memory_test {

template <class T> struct planned_memory {
  isotope::trace g;
  isotope::dynamic_plan p;
  memory_facts facts;
};
template <class T, class Model> planned_memory<T> plan_memory(const Model& model, const isotope::training_options& o = {}) {
  planned_memory<T> r;
  r.g = isotope::plan_detail::trace_training<T>(model, o);
  EXPECT_TRUE(r.g.error.empty()) << r.g.error.view();
  r.p = isotope::freeze(r.g, isotope::plan_detail::lay_out_for<T>(r.g));
  r.facts = check_memory(r.g, r.p, isotope::kernel_table<T>);
  return r;
}
std::int64_t temporaries(const isotope::dynamic_plan& p) { return p.totals.region[std::size_t(value_kind::temp)]; }

template <class T> struct memory : testing::Test {};
TYPED_TEST_SUITE(memory, every_target, target_name);

TYPED_TEST(memory, no_two_tensors_alive_overlap_on_random_graphs) {
  check_property(20240603, 300, 60, [] {
    const auto model = *random_models();
    isotope::training_options o;
    o.fuse = *rc::gen::arbitrary<bool>();
    o.accumulate = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) o.recompute = isotope::recompute::all;
    const auto r = plan_memory<TypeParam>(model, o);
    RC_ASSERT(r.facts.fault == "");
    RC_ASSERT(r.facts.peak_bytes == r.p.totals.lower_bound);
    RC_ASSERT(temporaries(r.p) >= r.p.totals.lower_bound);
    RC_ASSERT(temporaries(r.p) <= 2 * r.p.totals.lower_bound);  // first-come placement of blocks of similar size
  });
}

TYPED_TEST(memory, of_gpt2_is_within_five_percent_of_the_bytes_alive) {
  const auto r = plan_memory<TypeParam>(isotope::model::gpt_loss_of{isotope::model::gpt_sizes[0].size, 4, 1024});
  EXPECT_EQ(r.facts.fault, "");
  EXPECT_EQ(r.facts.peak_bytes, r.p.totals.lower_bound);
  EXPECT_LE(double(temporaries(r.p)), 1.05 * double(r.facts.peak_bytes));
}

/// The mean loss of rows of logits for the classes of GPT-2.
struct classifier {
  static constexpr std::int64_t rows = 4096, V = 50257;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto logits = matmul(s.input("x", {rows, 8}), s.param("w", {8, V}, {.init = isotope::init::normal(1)}));
    return cross_entropy(logits, s.input("targets", {rows}, isotope::dtype::i32));
  }
};
TYPED_TEST(memory, of_cross_entropy_beside_its_operands_is_a_few_numbers_a_row) {
  const auto plan = planned<TypeParam>(classifier{});
  const std::int64_t most = most_scratch_of_cross_entropy(classifier::rows);
  int seen = 0;
  for (const auto& s : plan.steps)
    if (s.op == &isotope::info<isotope::op::cross_entropy> || s.op == &isotope::info<isotope::op::cross_entropy_grad>) {
      ++seen;
      EXPECT_LE(s.scratch_bytes, most) << s.op->name;
    }
  EXPECT_EQ(seen, 2);
}

// If a backend limits allocations, the arena consists of chunks.
TEST(memory_chunks, are_not_straddled_by_any_temporary) {
  constexpr std::int64_t chunk = 1 << 16;
  const auto g = isotope::plan_detail::trace_training<reference_f32>(isotope::model::gpt_loss_of{{2, 2, 32, 65, 32}, 4, 32}, {});
  const auto p = isotope::freeze(g, isotope::lay_out(g, isotope::kernel_table<reference_f32>, chunk));
  EXPECT_EQ(check_memory(g, p, isotope::kernel_table<reference_f32>).fault, "");
  EXPECT_GT(temporaries(p), 4 * chunk);
  const auto count = [](const isotope::dynamic_plan& plan) {
    int n = 0;
    for (const auto& o : plan.operands) n += o.region == value_kind::temp && o.bytes > 0 && o.at / chunk != (o.at + o.bytes - 1) / chunk;
    return n;
  };
  EXPECT_EQ(count(p), 0);
  EXPECT_GT(count(isotope::freeze(g, isotope::lay_out(g, isotope::kernel_table<reference_f32>, 0))), 0);
}

// Where nodes run at the same time, a node should not wait until its predecessor has read what its own output replaces.
TEST(memory_delay, keeps_outputs_off_the_bytes_of_the_node_before_for_little_memory) {
  using T = reference_f32;
  const auto g = isotope::plan_detail::trace_training<T>(isotope::model::gpt_loss_of{{2, 2, 32, 65, 32}, 4, 32}, {});
  const auto planned_with = [&](std::int64_t delay) { return isotope::freeze(g, isotope::lay_out(g, isotope::kernel_table<T>, 0, delay)); };
  // The outputs that replace an operand of the step before, which is none of the step's own.
  const auto replacements = [](const isotope::dynamic_plan& p) {
    int n = 0;
    const auto overlap = [&](std::int32_t a, std::int32_t b) {
      const auto &x = p.operands[std::size_t(a)], &y = p.operands[std::size_t(b)];
      return x.region == value_kind::temp && y.region == value_kind::temp && x.at < y.at + y.bytes && y.at < x.at + x.bytes;
    };
    for (std::size_t i = 1; i < p.steps.size(); ++i) {
      const auto &before = p.steps[i - 1], &s = p.steps[i];
      for (int o = 0; o < s.outputs; ++o) {
        const auto y = s.operands + s.inputs + o;
        bool replaces = false, in_place = false;
        for (int k = 0; k < before.inputs; ++k) replaces = replaces || overlap(y, before.operands + k);
        for (int k = 0; k < s.inputs; ++k) in_place = in_place || overlap(y, s.operands + k);
        n += replaces && !in_place;
      }
    }
    return n;
  };
  const auto at_once = planned_with(0), delayed = planned_with(4);
  EXPECT_EQ(check_memory(g, delayed, isotope::kernel_table<T>).fault, "");
  EXPECT_LE(double(temporaries(delayed)), 1.05 * double(temporaries(at_once)));
  EXPECT_LT(2 * replacements(delayed), replacements(at_once));
}

// The checker must find the faults that it is made for.

struct memory_checker : testing::Test {
  using T = reference_f32;
  planned_memory<T> good = plan_memory<T>(isotope::model::gpt_loss_of{{2, 2, 16, 11, 6, 0.1}, 2, 5});
  std::string fault() const { return check_memory(good.g, good.p, isotope::kernel_table<T>).fault; }
};

TEST_F(memory_checker, accepts_the_plan_that_the_others_break) { EXPECT_EQ(fault(), ""); }

TEST_F(memory_checker, catches_every_temporary_that_moves_onto_a_live_one) {
  int moved = 0;
  const auto steps = good.p.steps;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    auto& y = good.p.operands[std::size_t(steps[i].operands + steps[i].inputs)];
    const auto& next = good.p.operands[std::size_t(steps[i + 1].operands)];
    if (y.region != value_kind::temp || y.at == 0 || next.region != value_kind::temp || next.at != y.at) continue;
    const auto at = y.at;
    y.at = at - 256;  // its reader still reads the old place
    EXPECT_NE(fault(), "") << "step " << i;
    y.at = at;
    ++moved;
  }
  EXPECT_GT(moved, 5);
}

TEST_F(memory_checker, catches_an_output_over_an_operand) {
  for (const auto& s : good.p.steps) {
    if (s.op != &isotope::info<isotope::op::attention>) continue;
    const auto at = good.p.operands[std::size_t(s.operands)].at;
    good.p.operands[std::size_t(s.operands + s.inputs)].at = at;
    break;
  }
  EXPECT_NE(fault().find("an output over operand"), std::string::npos) << fault();
}

TEST_F(memory_checker, catches_scratch_over_an_operand) {
  auto& s = good.p.steps[0];
  const auto& y = good.p.operands[std::size_t(s.operands + s.inputs)];
  ASSERT_EQ(y.region, value_kind::temp);
  s.scratch = y.at;
  s.scratch_bytes = 1;
  EXPECT_NE(fault().find("scratch over operand"), std::string::npos) << fault();
}

TEST_F(memory_checker, catches_parameters_in_one_place) {
  good.p.slots[1].at = good.p.slots[0].at;
  EXPECT_EQ(fault(), "parameters overlap");
}

TEST_F(memory_checker, catches_a_step_that_runs_before_its_operand_is_made) {
  std::size_t k = 0;  // the first step of attention and the one before it
  while (good.p.steps[k].op != &isotope::info<isotope::op::attention>) ++k;
  std::swap(good.p.steps[k], good.p.steps[k - 1]);
  std::vector<isotope::node*> live;
  for (auto& n : good.g.nodes)
    if (!n.dead && n.op->kind != isotope::op_kind::view) live.push_back(&n);
  std::swap(*live[k], *live[k - 1]);
  EXPECT_NE(fault().find("none has written"), std::string::npos) << fault();
}

TEST(shadow_memory, knows_the_holder_of_every_byte) {
  shadow s;
  s.write(0, 100, 1);
  s.write(40, 20, 2);
  EXPECT_TRUE(s.holds(0, 40, 1) && s.holds(40, 20, 2) && s.holds(60, 40, 1));
  EXPECT_FALSE(s.holds(39, 2, 1) || s.holds(0, 100, 1) || s.holds(99, 2, 1) || s.holds(100, 1, 1));
  s.write(30, 50, 1);
  EXPECT_TRUE(s.holds(0, 100, 1));
}

}  // namespace memory_test
