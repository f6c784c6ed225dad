#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;
using isotope::value_kind;

namespace structure_test {

using T = reference_f32;

std::int64_t region(const isotope::plan_view& p, value_kind k) { return p.totals.region[std::size_t(k)]; }
template <class Op> int count_steps(const isotope::plan_view& p) {
  int n = 0;
  for (const auto& s : p.steps) n += s.op == &isotope::info<Op>;
  return n;
}
const isotope::slot& slot_of(const isotope::plan_view& p, std::string_view path) {
  static const isotope::slot none{};
  for (const auto& s : p.slots)
    if (s.path.view() == path) return s;
  ADD_FAILURE() << "no slot " << path;
  return none;
}

struct two_layers {
  bool first = true, second = true;  // whether each layer is trainable
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto weight = [&](const char* path, bool trainable) {
      return s.param(path, {8, 8}, {.init = isotope::init::normal(0.3), .trainable = trainable});
    };
    return mean(matmul(matmul(s.input("x", {4, 8}), weight("a.weight", first)), weight("b.weight", second)));
  }
};

TEST(frozen_parameters, cost_no_product_of_the_backward_pass) {
  EXPECT_EQ(count_steps<isotope::op::matmul>(planned<T>(two_layers{true, true})), 5);   // 2 forward, db, dh, da
  EXPECT_EQ(count_steps<isotope::op::matmul>(planned<T>(two_layers{false, true})), 3);  // 2 forward, db
  EXPECT_EQ(count_steps<isotope::op::matmul>(planned<T>(two_layers{true, false})), 4);  // 2 forward, dh, da
  EXPECT_EQ(count_steps<isotope::op::adamw>(planned<T>(two_layers{false, false})), 0);
}

TEST(frozen_parameters, have_no_gradient_and_no_state_and_stay) {
  const auto plan = planned<T>(two_layers{false, true});
  EXPECT_EQ(slot_of(plan, "a.weight").grad, -1);
  EXPECT_EQ(slot_of(plan, "b.weight").grad, slot_of(plan, "b.weight").at);
  EXPECT_EQ(region(plan, value_kind::grad), 128 * 4);  // the size of a slot is a multiple of 128 elements
  EXPECT_EQ(region(plan, value_kind::moment), 2 * 128 * 4);
  EXPECT_EQ(region(plan, value_kind::param), 2 * 128 * 4);
  auto s = loaded<T>(plan);
  const auto before = read_all(s, isotope::tensor_kind::parameter);
  const auto after = step(s);
  EXPECT_TRUE(same_bits(before.at("a.weight"), after.parameters.at("a.weight")));
  EXPECT_FALSE(same_bits(before.at("b.weight"), after.parameters.at("b.weight")));
  EXPECT_EQ(after.gradients.count("a.weight"), 0u);
  EXPECT_EQ(read_all(s, isotope::tensor_kind::moment1).count("a.weight"), 0u);
}

struct packed_attention {
  bool apart = false;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto qkv = isotope::nn::linear(s / "qkv", s.input("x", {2, 6, 8}), 24);
    if (!apart) return attention(qkv, 2);
    const auto [q, k, v] = isotope::split<3>(qkv);
    return attention(q, k, v, 2);
  }
};
struct views_or_none {
  bool views = false;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    auto w = s.param("w", {8, 6}, isotope::init::ones);
    auto x = tanh(s.input("x", {8, 6}));
    if (views) {
      x = reshape(permute(permute(reshape(x, {2, 4, 6}), {2, 0, 1}), {1, 2, 0}), {8, 6});
      w = transpose(transpose(narrow(w, 0, 0, 8)));
    }
    return x * expand(reshape(w, {1, 8, 6}), {5, 8, 6});
  }
};
TEST(views, cost_no_step_and_no_bytes) {
  const auto plain = isotope::plan_inference<T>(views_or_none{false}), viewed = isotope::plan_inference<T>(views_or_none{true});
  ASSERT_TRUE(plain.ok() && viewed.ok());
  EXPECT_EQ(plain->steps.size(), viewed->steps.size());
  EXPECT_EQ(plain->totals.region, viewed->totals.region);
}
TEST(views, split_queries_keys_and_values_for_nothing) {
  const auto packed = isotope::plan_inference<T>(packed_attention{false}), apart = isotope::plan_inference<T>(packed_attention{true});
  ASSERT_TRUE(packed.ok() && apart.ok());
  EXPECT_EQ(packed->steps.size(), 2u);  // matmul with bias, attention
  EXPECT_EQ(packed->steps.size(), apart->steps.size());
  EXPECT_EQ(packed->totals.region, apart->totals.region);
}

TEST(tied_parameters, are_stored_once) {
  constexpr isotope::model::gpt size{2, 2, 32, 65, 16};
  const auto plan = planned<T>(isotope::model::gpt_loss_of{size, 2, 16});
  int tables = 0;
  for (const auto& s : plan.slots) tables += s.dims == isotope::shape{65, 32};
  EXPECT_EQ(tables, 1);
  EXPECT_EQ(plan.totals.parameters, parameter_count(size));
}

TEST(parameters, lie_in_one_region_with_decay_first_and_gradients_alike) {
  const auto plan = planned<T>(isotope::model::gpt_loss_of{{2, 2, 32, 65, 16}, 2, 16});
  std::int64_t last_decaying = 0, first_other = plan.totals.trained;
  for (const auto& s : plan.slots) {
    EXPECT_EQ(s.decay, s.dims.rank == 2) << s.path.view();
    EXPECT_EQ(s.grad, s.at);
    if (s.decay) last_decaying = std::max(last_decaying, s.at);
    else first_other = std::min(first_other, s.at);
  }
  EXPECT_LT(last_decaying, first_other);
  EXPECT_EQ(count_steps<isotope::op::adamw>(plan), 1);
  EXPECT_EQ(count_steps<isotope::op::global_norm>(plan), 1);
}

static_assert(parameter_count(isotope::model::gpt_sizes[0].size) == 124439808);
TEST(parameters, of_gpt2_are_124439808) {
  EXPECT_EQ(planned<T>(isotope::model::gpt_loss_of{isotope::model::gpt_sizes[0].size, 1, 8}).totals.parameters, 124439808);
}

struct huge {
  static constexpr std::int64_t N = 70000;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto table = s.param("a.table", {N, N}, isotope::init::zeros);  // 4.9e9 elements, 18 GiB
    const auto h = embedding(table, s.input("ids", {N}, isotope::dtype::i32));
    return mean(matmul(h, s.param("b.weight", {N, 2}, isotope::init::zeros)));
  }
};
TEST(sizes, are_64_bits_wide) {
  const auto plan = planned<T>(huge{});
  constexpr std::int64_t elements = huge::N * huge::N;
  static_assert(elements > (std::int64_t(1) << 32));
  EXPECT_EQ(plan.totals.parameters, elements + 2 * huge::N);
  EXPECT_GE(slot_of(plan, "b.weight").at, elements);
  EXPECT_GE(region(plan, value_kind::temp), 2 * elements * 4);  // h and dh
  EXPECT_GE(plan.totals.bytes, (elements * 4) * 6);             // parameters, gradients, two moments, two activations
  std::int64_t widest = 0, farthest = 0;
  for (const auto& o : plan.operands) {
    widest = std::max(widest, o.bytes);
    farthest = std::max(farthest, o.at);
  }
  EXPECT_GE(widest, elements * 4);
  EXPECT_GE(farthest, elements * 4);
}

constexpr isotope::model::gpt gpt2 = isotope::model::gpt_sizes[0].size;
TEST(inference, keeps_no_gradient_and_no_state) {
  const auto trained = planned<T>(isotope::model::gpt_loss_of{gpt2, 1, 256});
  const auto run = isotope::plan_inference<T>(isotope::model::gpt_logits_of{gpt2, 1, 256});
  ASSERT_TRUE(run.ok());
  for (auto k : {value_kind::grad, value_kind::moment, value_kind::master}) {
    EXPECT_EQ(region(*run, k), 0);
    EXPECT_TRUE(k == value_kind::master || region(trained, k) > 0);
  }
  EXPECT_EQ(region(*run, value_kind::param), region(trained, value_kind::param));
  EXPECT_LT(region(*run, value_kind::temp), region(trained, value_kind::temp) / 4);  // no activation outlives its readers
  EXPECT_LT(run->totals.bytes, trained.totals.bytes / 3);
}

// All temporaries but row statistics and losses are stored in the program's precision; weight gradients are not temporaries.
TEST(bf16, halves_parameters_and_activations) {
  const isotope::model::gpt_loss_of model{gpt2, 4, 1024};
  const auto wide = planned<reference_f32>(model), narrow = planned<reference_bf16>(model);
  EXPECT_EQ(2 * region(narrow, value_kind::param), region(wide, value_kind::param));
  EXPECT_EQ(region(narrow, value_kind::master), region(wide, value_kind::param));
  EXPECT_EQ(region(narrow, value_kind::grad), region(wide, value_kind::grad));
  EXPECT_EQ(region(narrow, value_kind::moment), region(wide, value_kind::moment));
  const double ratio = double(region(narrow, value_kind::temp)) / double(region(wide, value_kind::temp));
  EXPECT_TRUE(ratio > 0.49 && ratio < 0.55) << ratio;
}

// A model with one error is refused by one line.

enum class oddity {
  invalid_loss,
  concat_of_nothing,
  long_label,
  tied_initializer,
  tied_decay,
  tied_trainable,
  tied_rate,
  rate_of_nan,
  infinite_rate,
  rate_beyond_f32,
  parameter_loss,
  view_loss,
  input_loss,
  tied_same
};
struct odd_model {
  oddity what;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto again = [&](param_options o) { return mean(s.param("p", {4}, init::ones) * s.param("p", {4}, o)); };
    switch (what) {
      case oddity::invalid_loss: return s.param("p", {1}, init::ones), tensor<M>{};
      case oddity::concat_of_nothing: return mean(concat<M>({}, 0));
      case oddity::long_label: return mean(s.param("p", {4}, init::ones) * s.input(std::string(97, 'a'), {4}));
      case oddity::tied_initializer: return again({});
      case oddity::tied_same: return again({.init = init::ones});
      case oddity::tied_decay: return again({.init = init::ones, .decay = 1});
      case oddity::tied_trainable: return again({.init = init::ones, .trainable = false});
      case oddity::tied_rate: return again({.init = init::ones, .rate_scale = 2});
      case oddity::rate_of_nan: return mean(s.param("p", {4}, {.rate_scale = std::numeric_limits<double>::quiet_NaN()}));
      case oddity::infinite_rate: return mean(s.param("p", {4}, {.rate_scale = std::numeric_limits<double>::infinity()}));
      case oddity::rate_beyond_f32: return mean(s.param("p", {4}, {.rate_scale = -1e39}));
      case oddity::parameter_loss: return s.param("p", {1}, init::ones);
      case oddity::view_loss: return reshape(narrow(s.param("p", {4}, init::ones), 0, 1, 1), shape{});
      default: return s.param("p", {1}, init::ones), s.input("x", {});
    }
  }
};
std::string refusal(oddity what, const isotope::training_options& o = {}) {
  const auto p = isotope::plan_training<T>(odd_model{what}, o);
  return p.ok() ? "" : p.error().line();
}

TEST(odd_models, are_refused_in_one_line_that_names_the_tensor) {
  const auto says = [](oddity what, const char* text) { EXPECT_NE(refusal(what).find(text), std::string::npos) << refusal(what); };
  says(oddity::invalid_loss, "the loss is an invalid tensor");
  says(oddity::concat_of_nothing, "the loss is an invalid tensor");
  says(oddity::long_label, "input name longer than 96 characters: 'aaa");
  says(oddity::tied_initializer, "parameter 'p' is tied with another initializer");
  says(oddity::tied_decay, "parameter 'p' is tied with another decay");
  says(oddity::tied_trainable, "parameter 'p' is tied with another trainable");
  says(oddity::tied_rate, "parameter 'p' is tied with another rate_scale");
  says(oddity::rate_of_nan, "parameter 'p' has a rate_scale that is not a number");
  says(oddity::infinite_rate, "parameter 'p' has a rate_scale that is beyond what f32 holds");
  says(oddity::rate_beyond_f32, "parameter 'p' has a rate_scale that is beyond what f32 holds");
  for (const auto what : {oddity::parameter_loss, oddity::view_loss, oddity::input_loss})
    says(what, "the loss is a parameter, an input or a view of one");
  const auto forward = isotope::plan_inference<T>(odd_model{oddity::invalid_loss});
  ASSERT_FALSE(forward.ok());
  EXPECT_NE(forward.error().line().find("the model returned an invalid tensor"), std::string::npos) << forward.error().line();
  const auto never = refusal(oddity::tied_same, {.recompute = isotope::recompute::every(0)});
  EXPECT_NE(never.find("recompute::every(0): the period is at least 1"), std::string::npos) << never;
}

/// A loss that uses one of two parts of a weight.
struct half_used {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto [used, unused] = split<2>(s.param("w", {4, 8}, init::normal(0.5)), -1);
    return cast(mean(square(matmul(s.input("x", {3, 4}), used))), accum_of(s.machine->program()));
  }
};
TEST(bf16, leaves_a_zero_gradient_in_the_unused_part_of_a_split_weight) {
  const auto r = step<reference_bf16>(planned<reference_bf16>(half_used{}));
  ASSERT_EQ(r.gradients.at("w").size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(r.gradients.at("w")[i] == 0, i % 8 >= 4) << i;
}

isotope::param_group thaw_and_decay_nothing(std::string_view, const isotope::shape&, isotope::param_group) { return {.decay = false}; }
TEST(groups, thaw_parameters_and_order_those_of_the_evaluation_plan) {
  const isotope::training_options o{.group = &thaw_and_decay_nothing};
  const auto plan = planned<T>(two_layers{false, true}, o), born_so = planned<T>(two_layers{true, true}, {});
  EXPECT_EQ(count_steps<isotope::op::matmul>(plan), count_steps<isotope::op::matmul>(born_so));
  const auto thawed = step<T>(plan);
  EXPECT_TRUE(same_bits(thawed.gradients.at("a.weight"), step<T>(born_so).gradients.at("a.weight")));
  const isotope::model::gpt_loss_of model{{2, 2, 16, 11, 6}, 2, 5};
  const auto forward = isotope::plan_inference<T>(model, 0, true, false, nullptr, o.group);
  ASSERT_TRUE(forward.ok()) << forward.error().line();
  EXPECT_TRUE(opened<T>(1)->load(planned<T>(model, o), *forward).ok());
}

}  // namespace structure_test
