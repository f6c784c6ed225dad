/// Rows of logits on a backend whose kernels like long rows: which are padded, that the model's parameters and results stay as they are, and that other
/// backends plan as if there were no padding.
#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/steps.hpp>

using namespace plan_test;

namespace pad_rows_test {
using isotope::dtype, isotope::shape, isotope::tensor;

/// The processor, as if its kernels liked rows of 64 elements.
struct long_rows : isotope::backend::cpu {
  static constexpr std::string_view name = "long_rows";
  static constexpr std::int64_t row_multiple = 64;
};
template <class P> using plain = on_cpu<P, isotope::kernels::reference>;
template <class P> using padding = isotope::target<long_rows, P, isotope::kernels::reference>;
using f32 = isotope::precision::f32;
using bf16 = isotope::precision::bf16;

constexpr isotope::model::gpt odd{.layers = 2, .heads = 2, .width = 16, .vocab = 1003, .context = 8};
constexpr isotope::model::gpt_loss_of odd_loss{odd, 2, 8};

/// A head of its own, whose weight is stored by classes or by features.
struct head {
  int classes = 1003;
  bool by_features = false;
  template <isotope::Machine M> constexpr tensor<M> features(isotope::scope<M> s) const {
    return tanh(matmul(s.input("x", {2, 3, 8}), s.param("v", {8, 8}, isotope::init::normal(1))));
  }
  template <isotope::Machine M> constexpr tensor<M> targets(isotope::scope<M> s) const { return s.input("targets", {2, 3}, dtype::i32); }
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    const auto w = s.param("w", by_features ? shape{8, classes} : shape{classes, 8}, isotope::init::normal(1));
    if (by_features) return cross_entropy(matmul(features(s), w), targets(s));
    return isotope::nn::classify(features(s), w, targets(s));
  }
};
/// Logits that something else reads, too, or that are a sum.
struct shared_head : head {
  bool sums = false;
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    const auto w = s.param("w", {classes, 8}, isotope::init::normal(1));
    const auto x = features(s);
    const auto logits = sums ? matmul(x, transpose(w), s.input("c", {2, 3, classes}), 1, 1) : matmul(x, transpose(w));
    const auto loss = cross_entropy(logits, targets(s));
    return sums ? loss : loss + scale(mean(square(logits)), 1e-4);
  }
};
/// Computes a loss and returns the logits.
struct returned_head : head {
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    const auto logits = matmul(features(s), transpose(s.param("w", {classes, 8}, isotope::init::normal(1))));
    cross_entropy(logits, targets(s));
    return logits;
  }
};

int pads(const isotope::plan_view& p) {
  int n = 0;
  for (const auto& s : p.steps) n += s.op == &isotope::info<isotope::op::pad>;
  return n;
}
template <class T, class Model> int pads_of(const Model& m, const isotope::training_options& o = {}) { return pads(planned<T>(m, o)); }
int tensors_of(const isotope::plan_view& p, const shape& dims, dtype type) {
  int n = 0;
  for (const auto& o : p.operands) n += o.dims == dims && o.type == type;
  return n;
}

TEST(pad_rows, an_odd_vocabulary_is_padded_and_the_parameters_are_not) {
  const auto p = planned<padding<f32>>(odd_loss), q = planned<plain<f32>>(odd_loss);
  EXPECT_EQ(pads(p), 1);
  EXPECT_GT(tensors_of(p, {2, 8, 1024}, dtype::f32), 0);
  EXPECT_EQ(tensors_of(p, {2, 8, 1003}, dtype::f32), 0);
  for (const auto& o : p.operands) EXPECT_TRUE(o.dims.cols() != 1024 || o.dims.rank != 3 || is_dense(o.dims, o.strides));
  EXPECT_EQ(p.totals.parameters, parameter_count(odd));
  ASSERT_EQ(p.slots.size(), q.slots.size());
  for (std::size_t k = 0; k < p.slots.size(); ++k) {
    EXPECT_TRUE(p.slots[k].dims == q.slots[k].dims);
    EXPECT_EQ(p.slots[k].at, q.slots[k].at);
    EXPECT_EQ(p.slots[k].grad, q.slots[k].grad);
  }
  EXPECT_GT(tensors_of(planned<padding<bf16>>(odd_loss), {1024, 16}, dtype::f32), 0) << "the gradient of the table is summed in f32";
}
TEST(pad_rows, a_weight_keeps_its_order_in_memory) {
  const auto shape_of = [](bool by_features) {
    const auto p = planned<padding<f32>>(head{1003, by_features});
    for (const auto& s : p.steps)
      if (s.op == &isotope::info<isotope::op::pad>) return p.operands[std::size_t(s.operands + s.inputs)].dims;
    return shape{};
  };
  EXPECT_TRUE(shape_of(false) == (shape{1024, 8}));
  EXPECT_TRUE(shape_of(true) == (shape{8, 1024}));
}
TEST(pad_rows, reports_show_it) {
  const auto steps = isotope::step_list(planned<padding<f32>>(odd_loss));
  const auto at = steps.find("\tpad\t");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(steps.find("[1024,16]", at), std::string::npos);
}
TEST(pad_rows, rows_are_padded_up_to_a_sixteenth) {
  const auto padded = [](int classes) { return pads_of<padding<f32>>(head{classes}); };
  EXPECT_EQ(padded(2), 0);
  EXPECT_EQ(padded(60), 0) << "4 of 60";
  EXPECT_EQ(padded(61), 1) << "3 of 61";
  EXPECT_EQ(padded(64), 0);
  EXPECT_EQ(padded(65), 0);
  EXPECT_EQ(padded(120), 0) << "8 of 120";
  EXPECT_EQ(padded(121), 1) << "7 of 121";
  EXPECT_EQ(padded(1024), 0);
  EXPECT_EQ(pads_of<padding<f32>>(isotope::model::mlp_loss_of{{.classes = 2}, 4}), 0);
}
TEST(pad_rows, a_backend_without_a_multiple_pads_nothing) {
  EXPECT_EQ(pads_of<plain<f32>>(odd_loss), 0);
  EXPECT_EQ(pads_of<plain<bf16>>(head{}), 0);
}
TEST(pad_rows, logits_that_are_more_than_a_product_or_that_others_see_are_not_padded) {
  EXPECT_EQ(pads_of<padding<f32>>(shared_head{}), 0);
  EXPECT_EQ(pads_of<padding<f32>>(shared_head{{}, true}), 0);
  const auto p = isotope::plan_inference<padding<f32>>(returned_head{});
  ASSERT_TRUE(p.ok()) << p.error().line();
  EXPECT_EQ(pads(*p), 0);
}
TEST(pad_rows, evaluation_is_padded_and_logits_are_not) {
  const auto loss = isotope::plan_inference<padding<f32>>(odd_loss),
             logits = isotope::plan_inference<padding<f32>>(isotope::model::gpt_logits_of{odd, 2, 8});
  ASSERT_TRUE(loss.ok()) << loss.error().line();
  ASSERT_TRUE(logits.ok()) << logits.error().line();
  EXPECT_EQ(pads(*loss), 1);
  EXPECT_EQ(pads(*logits), 0);
}
TEST(pad_rows, every_kind_of_step_is_sound) {
  using isotope::optimizer_kind;
  for (const isotope::training_options& o :
       {isotope::training_options{.accumulate = true}, isotope::training_options{.recompute = isotope::recompute::all},
        isotope::training_options{.fuse = false}, isotope::training_options{.optimizer = optimizer_kind::muon},
        isotope::training_options{.clip = isotope::clipping::none, .update = isotope::update_policy::within_backward}}) {
    EXPECT_EQ(isotope::plan_detail::trace_training<padding<bf16>>(odd_loss, o, true).error.view(), "");
    EXPECT_EQ(isotope::plan_detail::trace_training<padding<f32>>(head{1003, true}, o, true).error.view(), "");
    EXPECT_EQ(pads_of<padding<bf16>>(odd_loss, o), 1);
  }
}

TEST(pad_rows, muon_updates_the_matrices_that_it_updates_without_padding) {
  const auto matrices = [](const isotope::dynamic_plan& p) {
    std::vector<std::string_view> r;
    for (const auto& s : p.slots)
      if (s.moment2 < 0) r.push_back(s.path.view());
    return r;
  };
  const isotope::training_options muon{.optimizer = isotope::optimizer_kind::muon};
  const auto want = planned<plain<f32>>(odd_loss, muon), got = planned<padding<f32>>(odd_loss, muon);
  EXPECT_EQ(matrices(want).size(), 8) << "four in each of two blocks";
  EXPECT_EQ(matrices(got), matrices(want));
}

/// A compiler pads as a program does.
using compiled = isotope::training<isotope::model::gpt_loss<isotope::model::gpt{1, 1, 4, 61, 2}, 1, 2>, padding<f32>>;
static_assert([] {
  int n = 0;
  for (const auto& s : compiled::view().steps) n += s.op == &isotope::info<isotope::op::pad>;
  return n;
}() == 1);

template <class T, class Model> outcome trained(const Model& m) {
  auto device = isotope::device<T>::open({.threads = 1});
  if (!device) throw std::runtime_error(device.error().line());
  auto s = device->load(planned<T>(m));
  if (!s) throw std::runtime_error(s.error().line());
  s->initialize(3);
  fill_inputs(*s);
  for (int k = 0; k < 2; ++k) step(*s);
  return step(*s);
}
template <class P> struct padded_head : testing::Test {};
using precisions = ::testing::Types<f32, bf16>;
struct precision_name {
  template <class P> static std::string GetName(int) { return std::string(P::name); }
};
TYPED_TEST_SUITE(padded_head, precisions, precision_name);

TYPED_TEST(padded_head, trains_to_the_same_bits) {
  for (const bool by_features : {false, true})
    EXPECT_EQ(difference(trained<plain<TypeParam>>(head{1003, by_features}), trained<padding<TypeParam>>(head{1003, by_features})), "");
}
TYPED_TEST(padded_head, may_be_tied_to_the_table_of_tokens) {
  const auto want = trained<plain<TypeParam>>(odd_loss), got = trained<padding<TypeParam>>(odd_loss);
  const double rounding = TypeParam::type == dtype::f32 ? 1e-5 : 1e-2;  // the two gradients of the table are added in another order
  EXPECT_NEAR(got.loss, want.loss, rounding * want.loss);
  EXPECT_NEAR(got.norm, want.norm, rounding * want.norm);
}

/// Rows of a late axis: the padded logits lie as dense rows of the padded length for every size.
struct late_head {
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    const isotope::scalar_dim S{5, 0};
    return isotope::nn::classify(s.input("x", {2, S, 8}), s.param("w", {1003, 8}, isotope::init::normal(1)),
                                 s.input("targets", {2, S}, dtype::i32));
  }
};
TEST(padded_rows, of_a_late_axis_are_dense_for_every_size) {
  const auto p = isotope::plan_inference<padding<f32>>(late_head{});
  ASSERT_TRUE(p.ok()) << p.error().line();
  int padded = 0;
  for (const auto& o : p->operands) {
    if (o.dims[-1] != 1024 || !o.dims.has_scalar()) continue;
    ++padded;
    ASSERT_GE(o.late, 0);
    EXPECT_TRUE(p->late[std::size_t(o.late)].layout.strides == isotope::late_dense(o.dims).strides);
  }
  EXPECT_GE(padded, 2);  // the result of the matmul, and what cross_entropy reads
}
TEST(padded_rows, stay_as_they_are_where_weights_are_stored_in_f16) {
  const auto p = isotope::plan_inference<padding<f32>>(head{}, 0, true, false, isotope::weights::f16);
  ASSERT_TRUE(p.ok()) << p.error().line();
  for (const auto& w : p->slots) EXPECT_EQ(w.type, dtype::f16) << w.path.view();
}
}  // namespace pad_rows_test
