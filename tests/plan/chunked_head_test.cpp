/// The head in chunks of rows: which bits stay, how far sums that are split may move, how much memory it saves, and what stands in its way.
#include "memory_checker.hpp"
#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cmath>

using namespace plan_test;

namespace chunked_head_test {
using isotope::dtype, isotope::head_obstacle, isotope::shape, isotope::training_options, isotope::value_kind;
namespace head = isotope::head;

/// Features tanh(x v) (rows, 8) and a head of their own, whose weight is stored by classes or by features.
struct classifier {
  std::int64_t rows = 7, classes = 21;
  bool by_features = false, frozen = false;
  template <isotope::Machine M> constexpr isotope::tensor<M> features(isotope::scope<M> s) const {
    return tanh(matmul(s.input("x", {rows, 8}), s.param("v", {8, 8}, isotope::init::normal(1))));
  }
  template <isotope::Machine M> constexpr isotope::tensor<M> weight(isotope::scope<M> s) const {
    const isotope::param_options options{.init = isotope::init::normal(1), .trainable = !frozen};
    return by_features ? s.param("w", {8, classes}, options) : transpose(s.param("w", {classes, 8}, options));
  }
  template <isotope::Machine M> constexpr isotope::tensor<M> logits(isotope::scope<M> s) const {
    return matmul(features(s), weight(s), 0.75);
  }
  template <isotope::Machine M> constexpr isotope::tensor<M> targets(isotope::scope<M> s) const {
    return s.input("targets", {rows}, dtype::i32);
  }
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return cross_entropy(logits(s), targets(s));
  }
};

/// Which targets count.
enum class counted { all, some, none };
/// One step of `batches` micro-batches. Every third target is no class, or every target.
template <class T> outcome trained(isotope::dynamic_plan plan, counted c = counted::all, int batches = 1) {
  auto s = loaded<T>(std::move(plan));
  auto targets = s.template input<std::int32_t>("targets");
  if (!targets) throw std::runtime_error(targets.error().line());
  for (std::size_t i = 0; i < targets->size(); ++i)
    if (c == counted::none || (c == counted::some && i % 3 == 1)) (*targets)[i] = i % 2 == 0 ? -1 : 1 << 30;
  outcome r;
  for (int k = 0; k < batches; ++k) {
    std::uint8_t active = k == 0 ? isotope::phase_first : isotope::phase_later;
    if (k + 1 == batches) active |= isotope::phase_last;
    const auto report = s.run(scalars(), active);
    r.loss = report.loss;
  }
  r.gradients = read_all(s, isotope::tensor_kind::gradient);
  return r;
}
/// Removes a gradient and returns it.
std::vector<float> take(outcome& r, const std::string& path) {
  auto values = std::move(r.gradients[path]);
  r.gradients.erase(path);
  return values;
}
/// Whether two tensors differ by at most `most` of their magnitude, as vectors.
bool near(const std::vector<float>& a, const std::vector<float>& b, double most) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
    apart += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    all += double(a[i]) * double(a[i]);
  }
  return a.size() == b.size() && std::sqrt(apart) <= most * std::sqrt(all);
}
/// Compares a step with chunks with one without: the loss and the gradient of the head's weight, which are sums over rows, within their roundings, and
/// the other gradients bit for bit. `rounding`: of a row, if kernels round the same row in another way among fewer rows; 0: they do not.
void compare(outcome want, outcome got, const std::string& weight, double largest_x, std::int64_t rows, double rounding = 0) {
  // The loss of a chunk, its share of all rows, their product and the sums over rows and chunks are rounded to f32, and so is the loss without chunks.
  const double u = 0x1p-24, off = (4.0 * double(rows) + 5) * u + rounding;
  EXPECT_TRUE(std::abs(got.loss - want.loss) <= off * std::abs(want.loss)) << got.loss << " for " << want.loss;
  const auto a = take(want, weight), b = take(got, weight);
  ASSERT_EQ(a.size(), b.size());
  // dw = x^T dlogits: a column of dlogits has magnitudes of at most 1 / n for each of n rows, so the magnitudes of a sum add up to at most the largest |x|.
  // Both ways of adding round at most twice a row: a term and a sum.
  for (std::size_t i = 0; i < a.size() && rounding == 0; ++i)
    ASSERT_TRUE(std::abs(double(a[i]) - double(b[i])) <= 4.0 * double(rows) * u * largest_x) << weight << ' ' << i;
  EXPECT_TRUE(near(a, b, rounding + 1e-5)) << weight;
  got.loss = want.loss;
  if (rounding == 0) { EXPECT_EQ(difference(want, got), ""); }
  for (const auto& [path, values] : want.gradients) EXPECT_TRUE(near(values, got.gradients[path], rounding)) << path;
}
template <class T> outcome trained_in(int chunks, const auto& model, counted c = counted::all, int batches = 1) {
  const auto plan = planned<T>(model, {.accumulate = batches > 1, .head = head::in_chunks(chunks)});
  return trained<T>(plan, c, batches);
}

/// Kernels of the processor give a row of a product the same bits wherever it lies in a whole tile; the tiles of all of them divide 96 rows.
template <class T> struct divided_head : testing::Test {};
using f32 = isotope::precision::f32;
using bf16 = isotope::precision::bf16;
using cpu_targets = ::testing::Types<on_cpu<f32, isotope::kernels::reference>, on_cpu<bf16, isotope::kernels::reference>,
                                     on_cpu<f32, isotope::kernels::portable>, on_cpu<bf16, isotope::kernels::portable>,
                                     on_cpu<f32, isotope::kernels::native>, on_cpu<bf16, isotope::kernels::native>>;
TYPED_TEST_SUITE(divided_head, cpu_targets, target_name);

TYPED_TEST(divided_head, gives_the_bits_of_a_whole_head_but_in_sums_over_chunks) {
  for (const counted c : {counted::all, counted::some, counted::none})
    for (const bool by_features : {false, true}) {
      const classifier model{.rows = 192, .by_features = by_features};
      compare(trained_in<TypeParam>(1, model, c), trained_in<TypeParam>(2, model, c), "w", 1, 192);
    }
}
TYPED_TEST(divided_head, may_be_tied_to_the_table_of_tokens) {
  const isotope::model::gpt_loss_of model{{2, 2, 16, 61, 24}, 8, 24};  // a norm of 16 numbers gives at most 4
  compare(trained_in<TypeParam>(1, model, counted::some), trained_in<TypeParam>(2, model, counted::some), "wte.weight", 4, 192);
}
TYPED_TEST(divided_head, sums_micro_batches) {
  for (const bool by_features : {false, true}) {
    const classifier model{.rows = 192, .by_features = by_features};
    compare(trained_in<TypeParam>(1, model, counted::some, 3), trained_in<TypeParam>(2, model, counted::some, 3), "w", 3, 3 * 192);
  }
}

template <class T> struct chunked_head : testing::Test {
  static constexpr bool single = T::precision::type == dtype::f32;
  /// Other kernels than the reference may take another tile, or another order of a sum, for fewer rows.
  static constexpr double rounding = std::string_view(T::kernel_set::name) == "reference" ? 0 : single ? 1e-5 : 2e-2;
};
TYPED_TEST_SUITE(chunked_head, every_target, target_name);

TYPED_TEST(chunked_head, may_have_any_number_of_rows) {
  for (const counted c : {counted::all, counted::some, counted::none})
    for (const int chunks : {2, 3, 7, 100})
      for (const bool by_features : {false, true}) {
        const classifier model{.rows = 7, .by_features = by_features};
        EXPECT_EQ(planned<TypeParam>(model, {.head = head::in_chunks(chunks)}).totals.head_chunks, std::min(chunks, 7));
        compare(trained_in<TypeParam>(1, model, c), trained_in<TypeParam>(chunks, model, c), "w", 1, 7, this->rounding);
      }
}
TYPED_TEST(chunked_head, may_have_a_frozen_weight) {
  const classifier model{.rows = 9, .frozen = true};
  compare(trained_in<TypeParam>(1, model), trained_in<TypeParam>(2, model), "w", 1, 9, this->rounding);
}
TYPED_TEST(chunked_head, sums_micro_batches_on_every_backend) {
  const classifier model{.rows = 300};
  compare(trained_in<TypeParam>(1, model, counted::some, 3), trained_in<TypeParam>(3, model, counted::some, 3), "w", 3, 900,
          this->rounding);
}
TYPED_TEST(chunked_head, uses_each_byte_once_at_a_time) {
  for (const bool accumulate : {false, true}) {
    const training_options o{.accumulate = accumulate, .head = head::in_chunks(3)};
    for (const int layers : {1, 2}) {
      const auto g = isotope::traced_training<TypeParam>(isotope::model::gpt_loss_of{{layers, 2, 16, 61, 24}, 12, 24}, o);
      const auto p = isotope::freeze(g, isotope::plan_detail::lay_out_for<TypeParam>(g));
      const auto facts = check_memory(g, p, isotope::kernel_table<TypeParam>);
      EXPECT_EQ(facts.fault, "");
      EXPECT_EQ(facts.peak_bytes, p.totals.lower_bound);
    }
  }
}
TYPED_TEST(chunked_head, is_sound_in_every_kind_of_step) {
  using isotope::optimizer_kind;
  const auto chunks = head::in_chunks(2);
  for (const training_options& o :
       {training_options{.accumulate = true, .head = chunks}, training_options{.recompute = isotope::recompute::all, .head = chunks},
        training_options{.recompute = isotope::recompute::cheap, .head = chunks}, training_options{.head = chunks, .fuse = false},
        training_options{.optimizer = optimizer_kind::muon, .head = chunks},
        training_options{.clip = isotope::clipping::none, .update = isotope::update_policy::within_backward, .head = chunks}}) {
    const auto g = isotope::plan_detail::trace_training<TypeParam>(isotope::model::gpt_loss_of{{2, 2, 16, 61, 24}, 2, 24}, o, true);
    EXPECT_EQ(g.error.view(), "");
    EXPECT_EQ(g.head_chunks, 2);
    EXPECT_EQ(isotope::plan_detail::trace_training<TypeParam>(classifier{.by_features = true}, o, true).error.view(), "");
  }
}
TYPED_TEST(chunked_head, updates_within_the_backward_pass_to_the_same_bits) {
  const isotope::model::gpt_loss_of model{{1, 2, 16, 61, 24}, 2, 24};
  const training_options after{.clip = isotope::clipping::none, .head = head::in_chunks(2)};
  auto within = after;
  within.update = isotope::update_policy::within_backward;
  auto want = step<TypeParam>(planned<TypeParam>(model, after)), got = step<TypeParam>(planned<TypeParam>(model, within));
  EXPECT_EQ(want.loss, got.loss);
  EXPECT_EQ(want.parameters, got.parameters);
}

// The check of traces knows products that are added to others.

isotope::trace chunked_trace() {
  return isotope::traced_training<reference_f32>(classifier{.by_features = true}, {.head = head::in_chunks(2), .fuse = false});
}
/// The last node that adds to what another made.
isotope::node& adding_node(isotope::trace& g) {
  std::size_t i = g.nodes.size() - 1;
  while (i > 0 && g.nodes[i].adds == 0) --i;
  return g.nodes[i];
}
std::string fault_of(const isotope::trace& g) { return std::string(isotope::trace_fault(g, "a pass").view()); }

TEST(trace_of_chunks, is_sound) { EXPECT_EQ(fault_of(chunked_trace()), ""); }
TEST(trace_of_chunks, with_a_sum_that_overwrites_is_refused) {
  auto g = chunked_trace();
  adding_node(g).adds = 0;
  EXPECT_NE(fault_of(g).find(" over %"), std::string::npos) << fault_of(g);
}
TEST(trace_of_chunks, with_a_sum_of_nothing_is_refused) {
  auto g = chunked_trace();
  g.values[std::size_t(adding_node(g).out[0])].base = -1;
  EXPECT_NE(fault_of(g).find("which no earlier node has made"), std::string::npos) << fault_of(g);
}
TEST(trace_of_chunks, with_a_sum_by_an_op_that_overwrites_is_refused) {
  auto g = chunked_trace();
  for (auto& n : g.nodes)
    if (!n.dead && n.op == &isotope::info<isotope::op::cross_entropy>) n.adds = 1;
  EXPECT_NE(fault_of(g).find("adds to outputs that its kernel overwrites"), std::string::npos) << fault_of(g);
}

/// Sizes and bits that are compared with formulas are those of the processor, also where the build has another backend.
using on_cpu = isotope::target<isotope::backend::cpu, isotope::precision::f32, isotope::kernels::reference>;

// On a backend that pads rows of logits.
struct long_rows : isotope::backend::cpu {
  static constexpr std::string_view name = "long_rows";
  static constexpr std::int64_t row_multiple = 64;
};
TEST(padded_chunked_head, has_the_bits_of_chunks_without_padding) {
  using plain = on_cpu;
  using padding = isotope::target<long_rows, isotope::precision::f32, isotope::kernels::reference>;
  const classifier model{.rows = 9, .classes = 125};
  const training_options o{.head = head::in_chunks(4)};
  const auto p = planned<padding>(model, o);
  int padded = 0;
  for (const auto& x : p.operands) padded += x.dims == shape{3, 128};
  EXPECT_GT(padded, 0);
  auto device = isotope::device<padding>::open({.threads = 1});
  ASSERT_TRUE(device.ok());
  auto s = device->load(p);
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  fill_inputs(*s);
  EXPECT_EQ(difference(step(*s), step<plain>(planned<plain>(model, o))), "");
}

std::int64_t temporaries(const isotope::dynamic_plan& p) { return p.totals.region[std::size_t(value_kind::temp)]; }

// The logits of one chunk are left. Beside them, the whole head needs nothing that chunks do not need, which in return keep dx (rows, 8), whether rows
// count, and a dozen of numbers a chunk, each in 256 bytes.
TEST(chunked_head_memory, falls_by_the_logits_of_all_chunks_but_one) {
  const std::int64_t rows = 4096, classes = 1000;
  const classifier model{.rows = rows, .classes = classes};
  const auto whole = temporaries(planned<on_cpu>(model));
  for (const int chunks : {2, 4, 8}) {
    const auto p = planned<on_cpu>(model, {.head = head::in_chunks(chunks)});
    const std::int64_t logits = 4 * rows * classes, less = logits - logits / chunks;
    EXPECT_LE(temporaries(p), whole - less + 4 * rows * (8 + 4) + 12 * 256 * chunks);
    EXPECT_GE(temporaries(p), whole - less - 4 * rows * 8);
  }
}
TEST(chunked_head_memory, takes_the_fewest_chunks_that_fit_a_budget) {
  const classifier model{.rows = 4096, .classes = 1000};
  const auto bytes = [&](int chunks) { return planned<reference_f32>(model, {.head = head::in_chunks(chunks)}).totals.bytes; };
  const auto chosen = [&](std::int64_t budget) { return planned<reference_f32>(model, {.head = head::within(budget)}).totals.head_chunks; };
  EXPECT_EQ(chosen(bytes(1)), 1);
  EXPECT_EQ(chosen(bytes(1) - 1), 2);
  EXPECT_EQ(chosen(bytes(2)), 2);
  EXPECT_EQ(chosen(bytes(2) - 1), 3);
  EXPECT_EQ(chosen(bytes(8)), 8);
  EXPECT_EQ(chosen(1), 32) << "nothing fits";
}

// What is in the way.

struct sum_of_losses : classifier {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto loss = cross_entropy(logits(s), targets(s));
    return loss + loss;
  }
};
struct read_loss : classifier {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto loss = cross_entropy(logits(s), targets(s));
    square(loss);
    return loss;
  }
};
struct biased : classifier {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return cross_entropy(logits(s) + s.param("bias", {classes}), targets(s));
  }
};
struct by_columns : classifier {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto x = transpose(tanh(matmul(s.param("v", {8, 8}, isotope::init::normal(1)), s.input("x", {8, rows}))));
    return cross_entropy(matmul(x, weight(s)), targets(s));
  }
};
struct in_a_block : classifier {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return isotope::nn::block(s, features(s),
                              [&](isotope::scope<M> h, isotope::tensor<M> x) { return cross_entropy(matmul(x, weight(h)), targets(h)); });
  }
};
template <class Model> head_obstacle obstacle_of(const Model& model, training_options o = {}) {
  o.head = head::in_chunks(2);
  const auto p = planned<reference_f32>(model, o);
  EXPECT_EQ(p.totals.head_chunks, p.totals.obstacle == head_obstacle::none ? 2 : 1);
  EXPECT_EQ(isotope::text_of(p.totals.obstacle).empty(), p.totals.obstacle == head_obstacle::none);
  o.head = head::within(1);
  EXPECT_EQ(planned<reference_f32>(model, o).totals.obstacle, p.totals.obstacle);
  return p.totals.obstacle;
}
TEST(head_obstacles, are_named) {
  EXPECT_EQ(obstacle_of(classifier{}), head_obstacle::none);
  EXPECT_EQ(obstacle_of(sum_of_losses{}), head_obstacle::no_cross_entropy);
  EXPECT_EQ(obstacle_of(read_loss{}), head_obstacle::loss_is_read);
  EXPECT_EQ(obstacle_of(biased{}), head_obstacle::no_product);
  EXPECT_EQ(obstacle_of(by_columns{}), head_obstacle::columns);
  EXPECT_EQ(obstacle_of(classifier{.rows = 1}), head_obstacle::one_row);
  EXPECT_EQ(obstacle_of(in_a_block{}), head_obstacle::none);
  EXPECT_EQ(obstacle_of(in_a_block{}, {.recompute = isotope::recompute::all}), head_obstacle::recomputed);
}
TEST(head_obstacles, of_a_whole_head_are_not_looked_for) {
  EXPECT_EQ(planned<reference_f32>(biased{}).totals.obstacle, head_obstacle::none);
}
TEST(head_obstacles, no_chunk_is_refused) {
  const auto p = isotope::plan_training<reference_f32>(classifier{}, {.head = head::in_chunks(0)});
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().line().find("a head in 0 chunks: give at least 1"), std::string::npos) << p.error().line();
}

/// A compiler plans chunks as a program does.
using compiled = isotope::training<isotope::model::gpt_loss<isotope::model::gpt{1, 1, 4, 5, 2}, 2, 2>, reference_f32,
                                   training_options{.head = head::in_chunks(2)}>;
static_assert(compiled::view().totals.head_chunks == 2);

}  // namespace chunked_head_test
