/// update_policy::within_backward gives the same weights as updates after the backward pass, in less memory.
#include "exposed.hpp"
#include "memory_checker.hpp"
#include "property.hpp"
#include "random_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace plan_test;
using isotope::clipping;
using isotope::optimizer_kind;
using isotope::tensor_kind;
using isotope::training_options;
using isotope::update_policy;
using isotope::value_kind;

namespace within_backward_test {

constexpr isotope::model::gpt small{.layers = 2, .heads = 2, .width = 16, .vocab = 11, .context = 6, .dropout = 0.1};
constexpr isotope::model::gpt_loss_of gpt{small, 2, 5};  // the token table is tied, so it has gradients from both ends of the model

isotope::param_group mixed_groups(std::string_view path, const isotope::shape&, isotope::param_group given) {
  if (path.starts_with("wpe")) given.rate_scale = 0.5;
  if (path.starts_with("h.1.ln")) given.rate_scale = 2;
  if (path == "h.0.mlp.c_fc.bias" || path == "ln_f.weight") given.trainable = false;
  return given;
}
constexpr training_options within(training_options o) {
  o.update = update_policy::within_backward;
  return o;
}
isotope::step_scalars at(int step) {
  auto x = scalars();
  x.counter = std::uint64_t(step);
  x.optimizer_step = step;
  x.momentum = 0.9f;
  x.clip_norm = 0.05f;  // below the norms of some tensors and above those of others
  x.clip_value = 0.01f;
  return x;
}

/// What an optimiser step changes, by path: weights, the copies of them that ops read, and moments.
template <class Session> std::vector<tensors> everything(Session& s) {
  using E = typename Session::target::precision::storage;
  tensors read;
  for (const auto& [path, v] : all_values<E>(s, "param"))
    for (const E x : v) read[path].push_back(float(x));
  return {read_all(s, tensor_kind::parameter), read, read_all(s, tensor_kind::moment1), read_all(s, tensor_kind::moment2)};
}
inline bool same_bits(const std::vector<tensors>& a, const std::vector<tensors>& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].size() != b[k].size()) return false;
    for (const auto& [path, v] : a[k])
      if (!b[k].contains(path) || !plan_test::same_bits(v, b[k].at(path))) return false;
  }
  return true;
}

/// Whether `steps` steps by both policies give the same bits. The losses must be equal, too.
///
/// Updates within the backward pass give a norm for each tensor, each rounded once to f32 with u = 2^-24; otherwise the norm of the whole gradient is rounded
/// once. On devices without f64, sums of squares have an error of a few u more.
template <isotope::Target T, class Model> bool same_steps(const Model& model, const training_options& o, int steps) {
  auto after = loaded<T>(exposed<T>(planned<T>(model, o))), inside = loaded<T>(exposed<T>(planned<T>(model, within(o))));
  bool same = same_bits(everything(after), everything(inside));
  for (int i = 1; i <= steps; ++i) {
    const auto a = after.run(at(i)), b = inside.run(at(i));
    same = same && a.loss == b.loss && !a.skipped && !b.skipped && std::fabs(a.grad_norm - b.grad_norm) <= 1e-6 * a.grad_norm;
  }
  return same && same_bits(everything(after), everything(inside));
}

template <class T> struct within_backward : testing::Test {};
TYPED_TEST_SUITE(within_backward, every_target, target_name);

TYPED_TEST(within_backward, adamw_leaves_the_bits_that_it_leaves_after_the_backward_pass) {
  EXPECT_TRUE((same_steps<TypeParam>(gpt, {.clip = clipping::none, .group = &mixed_groups}, 3)));
}
TYPED_TEST(within_backward, sgd_leaves_the_same_bits_also_with_recomputed_blocks) {
  EXPECT_TRUE((same_steps<TypeParam>(
      gpt, {.optimizer = optimizer_kind::sgd, .clip = clipping::none, .group = &mixed_groups, .recompute = isotope::recompute::all}, 2)));
}
TYPED_TEST(within_backward, clipping_by_tensor_or_by_value_leaves_the_same_bits) {
  for (const auto clip : {clipping::tensor_norm, clipping::value})
    EXPECT_TRUE((same_steps<TypeParam>(gpt, {.clip = clip, .group = &mixed_groups}, 2))) << int(clip);
}

/// Two parameters that share a gradient, which the backward pass also reads; a parameter that is not read; and one whose gradient is transposed.
struct awkward {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto first = s.param("first", {4, 6}, init::normal(1)), second = s.param("second", {4, 6}, init::normal(1));
    static_cast<void>(s.param("unread", {3, 5}, init::normal(1)));
    const auto across = reshape(transpose(s.param("across", {6, 4}, init::normal(1))), {8, 3});
    const auto y = tanh(matmul(s.input("x", {4, 4}), s.param("w", {4, 6}, init::normal(1)))) + first + second;
    return cast(mean(square(y)) + mean(square(across)), accum_of(s.machine->program()));
  }
};
TYPED_TEST(within_backward, gradients_that_are_shared_absent_or_strided_update_as_they_do_afterwards) {
  for (const auto clip : {clipping::none, clipping::tensor_norm})
    EXPECT_TRUE((same_steps<TypeParam>(awkward{}, {.clip = clip}, 3))) << int(clip);
}

TEST(within_backward_plans, give_the_same_bits_on_random_graphs) {
  check_property(20261122, affordable(150), 50, [] {
    const auto model = *random_models();
    training_options o{.clip = *rc::gen::element(clipping::none, clipping::tensor_norm, clipping::value)};
    o.fuse = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) o.recompute = isotope::recompute::all;
    auto after = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, o)));
    auto inside = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, within(o))));
    for (int i = 1; i <= 2; ++i) {
      const auto a = after.run(at(i)), b = inside.run(at(i));
      RC_ASSERT(a.loss == b.loss);
    }
    RC_ASSERT(all_values<double>(after, "param") == all_values<double>(inside, "param"));
    RC_ASSERT(same_bits(everything(after), everything(inside)));
  });
}

TEST(within_backward_plans, keep_every_tensor_until_its_last_reader_on_random_graphs) {
  check_property(20261123, 200, 60, [] {
    using T = portable_f32;
    const auto model = *random_models();
    auto o = within({.clip = *rc::gen::element(clipping::none, clipping::tensor_norm)});
    o.fuse = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) o.recompute = isotope::recompute::all;
    const auto g = isotope::plan_detail::trace_training<T>(model, o);
    const auto p = isotope::freeze(g, isotope::plan_detail::lay_out_for<T>(g));
    const auto facts = check_memory(g, p, isotope::kernel_table<T>);
    RC_ASSERT(facts.fault == "");
    RC_ASSERT(facts.peak_bytes == p.totals.lower_bound);
  });
}

/// Counts the update steps, and those that do not directly follow a step that reads the weight or makes the gradient; and whether a step reads a weight
/// after its update.
struct placing {
  int updates = 0, late = 0;
  bool stale = false;
};
placing placing_of(const isotope::trace& g) {
  std::vector<isotope::node> steps;
  for (const auto& n : g.nodes)
    if (!n.dead && n.op->kind != isotope::op_kind::view) steps.push_back(n);
  placing r;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].op != &isotope::info<isotope::op::adamw>) continue;
    ++r.updates;
    const auto weight = steps[i].in[0], gradient = steps[i].in[3];
    const auto touches = [&](const isotope::node& n, bool or_gradient) {
      const auto same = [&](std::int32_t v) {
        const auto from = g.root_offset(weight), at = g.root_offset(v);
        const bool part = g.root(v) == g.root(weight) && at >= from && at < from + g.values[std::size_t(weight)].dims.count();
        return part || (or_gradient && g.root(v) == g.root(gradient));
      };
      return std::any_of(n.in.begin(), n.in.begin() + n.inputs(), same) || std::any_of(n.out.begin(), n.out.begin() + n.outputs(), same);
    };
    for (std::size_t k = i + 1; k < steps.size(); ++k) r.stale = r.stale || touches(steps[k], false);
    std::size_t before = i;
    while (before > 0 && steps[before - 1].phases == isotope::phase_last) --before;
    r.late += before == 0 || !touches(steps[before - 1], true);
  }
  return r;
}
TEST(within_backward_plans, update_each_parameter_at_once) {
  auto g = isotope::traced_training<reference_f32>(gpt, within({.clip = clipping::none}));
  const auto r = placing_of(g);
  EXPECT_EQ(r.updates, 28);
  EXPECT_EQ(r.late, 0);
  EXPECT_FALSE(r.stale);
  for (std::size_t i = 0; i < g.nodes.size(); ++i)  // reports look up the node of each value
    EXPECT_TRUE(g.nodes[i].dead || g.values[std::size_t(g.nodes[i].out[0])].producer == std::int32_t(i)) << i;
  // The check must notice if a norm and its update are one step later or one step earlier.
  std::vector<isotope::node> steps;
  for (const auto& n : g.nodes)
    if (!n.dead && n.op->kind != isotope::op_kind::view) steps.push_back(n);
  int late = 0, stale = 0;
  const auto ours = [&](std::size_t i) { return steps[i].phases == isotope::phase_last; };
  for (std::size_t i = 2; i + 2 < steps.size(); ++i) {
    if (ours(i - 1) || !ours(i) || !ours(i + 1) || ours(i + 2)) continue;
    const auto turned = [&](std::size_t first, std::size_t middle, std::size_t last) {
      g.nodes = steps;
      const auto at = [&](std::size_t k) { return g.nodes.begin() + std::ptrdiff_t(k); };
      std::rotate(at(first), at(middle), at(last));
      return placing_of(g);
    };
    EXPECT_GE(turned(i, i + 2, i + 3).late, 1) << i;
    ++late;
    stale += turned(i - 1, i, i + 2).stale;
  }
  EXPECT_GT(late, 3);
  EXPECT_GT(stale, 0);
}

std::int64_t region(const isotope::plan_view& p, value_kind k) { return p.totals.region[std::size_t(k)]; }

TEST(within_backward_plans, of_gpt2_need_the_gradients_less_the_largest_one) {
  constexpr auto size = isotope::model::gpt_sizes[0].size;
  const training_options o{.clip = clipping::none};
  const auto after = planned<portable_f32>(isotope::model::gpt_loss_of{size, 4, 64}, o),
             inside = planned<portable_f32>(isotope::model::gpt_loss_of{size, 4, 64}, within(o));
  EXPECT_EQ(region(inside, value_kind::grad), 0);
  for (auto k : {value_kind::param, value_kind::master, value_kind::moment, value_kind::input})
    EXPECT_EQ(region(after, k), region(inside, k));
  // When most temporaries are alive, so is the gradient of the tied table, which is complete only at the end of the backward pass, and those of one matmul.
  const std::int64_t table = 4LL * size.vocab * size.width, product = 4LL * 4 * size.width * size.width;
  const std::int64_t more = region(inside, value_kind::temp) - region(after, value_kind::temp);
  EXPECT_TRUE(more <= table + product) << more;
  EXPECT_EQ(after.totals.bytes - inside.totals.bytes,
            region(after, value_kind::grad) - more - (region(inside, value_kind::output) - region(after, value_kind::output)));
  EXPECT_GE(after.totals.bytes - inside.totals.bytes, 4 * after.totals.parameters - table - product);
  const auto longer = planned<portable_f32>(isotope::model::gpt_loss_of{size, 4, 1024}, within(o));
  EXPECT_LE(double(region(longer, value_kind::temp)), 1.05 * double(longer.totals.lower_bound));
}

TEST(within_backward_plans, give_the_same_bits_on_any_number_of_threads) {
  std::vector<std::vector<tensors>> left;
  for (int threads = 1; threads <= 3; ++threads) {
    auto device = opened<portable_f32>(threads);
    auto s = device->load(exposed<portable_f32>(planned<portable_f32>(gpt, within({.clip = clipping::tensor_norm}))), {});
    ASSERT_TRUE(s.ok());
    s->initialize(3);
    fill_inputs(*s);
    for (int i = 1; i <= 3; ++i) s->run(at(i));
    left.push_back(everything(*s));
  }
  EXPECT_TRUE(same_bits(left[0], left[1]));
  EXPECT_TRUE(same_bits(left[0], left[2]));
}

TEST(within_backward_plans, made_by_the_compiler_are_those_made_at_run_time) {
  constexpr training_options o{.clip = clipping::none, .update = update_policy::within_backward};
  constexpr isotope::model::gpt tiny{1, 2, 8, 7, 4};
  using program = isotope::training<isotope::model::gpt_loss<tiny, 2, 3>, reference_f32, o>;
  const auto dynamic = planned<reference_f32>(isotope::model::gpt_loss_of{tiny, 2, 3}, o);
  const isotope::plan_view fixed = program::view();
  EXPECT_EQ(fixed.totals.region, dynamic.totals.region);
  ASSERT_EQ(fixed.steps.size(), dynamic.steps.size());
  for (std::size_t i = 0; i < fixed.steps.size(); ++i) EXPECT_EQ(fixed.steps[i].op, dynamic.steps[i].op);
  ASSERT_EQ(fixed.operands.size(), dynamic.operands.size());
  for (std::size_t i = 0; i < fixed.operands.size(); ++i) EXPECT_EQ(fixed.operands[i].at, dynamic.operands[i].at);
  static_assert(program::gradient("wte.weight") == -1);
}

TEST(within_backward_reports, hold_the_norm_of_each_tensor) {
  auto after = loaded<reference_f32>(planned<reference_f32>(gpt, {.clip = clipping::none, .group = &mixed_groups}));
  auto inside = loaded<reference_f32>(planned<reference_f32>(gpt, within({.clip = clipping::none, .group = &mixed_groups})));
  after.run(at(1));
  const auto report = inside.run(at(1));
  const auto norms = inside.output<float>("grad_norm");
  ASSERT_TRUE(norms.ok());
  std::size_t k = 0;
  double all = 0;
  const auto gradients = read_all(after, tensor_kind::gradient);
  for (const auto& slot : after.parameters()) {
    const auto g = gradients.find(std::string(slot.path.view()));
    if (g == gradients.end()) continue;
    double sum = 0;
    for (const float x : g->second) sum += double(x) * double(x);
    ASSERT_LT(k, norms->size());
    EXPECT_TRUE(std::fabs(double((*norms)[k]) - std::sqrt(sum)) <= 1e-6 * std::sqrt(sum)) << slot.path.view();
    all += double((*norms)[k]) * double((*norms)[k]);
    ++k;
  }
  EXPECT_EQ(k, norms->size());
  EXPECT_EQ(k, 26u);
  EXPECT_EQ(report.grad_norm, std::sqrt(all));
}

TEST(within_backward_reports, say_that_there_is_no_gradient_to_read) {
  auto s = loaded<reference_f32>(planned<reference_f32>(gpt, within({.clip = clipping::none, .group = &mixed_groups})));
  s.run(at(1));
  EXPECT_TRUE(read_all(s, tensor_kind::gradient).empty());
  EXPECT_EQ(read_all(s, tensor_kind::moment1).size(), 26u);
  EXPECT_EQ(read_all(s, tensor_kind::parameter).size(), 28u);
}

/// The derivative of the square root at 0 is infinite, so the loss is finite but not the gradient of `root`; that of `plain` is finite.
struct steep {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {3, 4});
    const auto root = sum(sqrt(s.param("root", {3, 4}, init::zeros) * x)), plain = sum(square(s.param("plain", {4}, init::ones)));
    return cast(root + plain, accum_of(s.machine->program()));
  }
};
template <class T> struct within_backward_skips : testing::Test {
  using E = typename T::precision::storage;
  session_of<T> s = loaded<T>(exposed<T>(planned<T>(steep{}, within({.clip = clipping::none}))));
  void fill(float v) {
    auto x = *s.template input<E>("x");
    std::fill(x.begin(), x.end(), E(v));
  }
};
TYPED_TEST_SUITE(within_backward_skips, every_target, target_name);

TYPED_TEST(within_backward_skips, change_nothing_where_the_loss_is_not_finite) {
  const auto before = everything(this->s);
  for (const float v : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    this->fill(v);
    const auto report = this->s.run(scalars());
    EXPECT_TRUE(report.skipped && !std::isfinite(report.loss));
    EXPECT_TRUE(same_bits(before, everything(this->s)));
  }
  EXPECT_EQ(this->s.step_count(), 0);
}
TYPED_TEST(within_backward_skips, keep_a_tensor_whose_gradient_is_not_finite_and_say_so) {
  this->fill(1);
  const auto before = everything(this->s);
  const auto report = this->s.run(scalars());
  EXPECT_EQ(report.loss, 4);
  EXPECT_TRUE(report.skipped && !std::isfinite(report.grad_norm));
  const auto after = everything(this->s);
  for (std::size_t k = 0; k < before.size(); ++k) {
    EXPECT_TRUE(plan_test::same_bits(before[k].at("root"), after[k].at("root"))) << k;
    EXPECT_FALSE(plan_test::same_bits(before[k].at("plain"), after[k].at("plain"))) << k;
  }
}

TEST(within_backward_plans, refuse_what_needs_all_gradients) {
  const auto line = [](const training_options& o) {
    const auto p = isotope::plan_training<reference_f32>(gpt, within(o));
    return p.ok() ? std::string() : p.error().what;
  };
  EXPECT_NE(line({}).find("cannot wait for the global norm"), std::string::npos) << line({});
  EXPECT_NE(line({.clip = clipping::none, .accumulate = true}).find("keeps no gradient for later micro-batches"), std::string::npos);
  EXPECT_NE(line({.optimizer = optimizer_kind::none, .clip = clipping::none}).find("needs an optimizer"), std::string::npos);
  EXPECT_EQ(line({.clip = clipping::none}), "");
}

}  // namespace within_backward_test
