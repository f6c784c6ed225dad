/// What training_options change in a plan, and which results they must not change.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/nn/lora.hpp>
#include <isotope/plan/report/dispatches.hpp>

namespace iso = isotope;
using target = iso::target<iso::backend::cpu, iso::precision::f64, iso::kernels::reference>;
using iso::tensor_kind;

namespace options_test {

constexpr iso::model::gpt tiny{.layers = 2, .heads = 2, .width = 16, .vocab = 11, .context = 8};
constexpr iso::model::gpt_loss_of loss{tiny, 2, 8};

struct data {
  std::vector<std::int32_t> tokens, targets;
  data() {
    for (int i = 0; i < 16; ++i) {
      tokens.push_back((7 * i + 3) % 11);
      targets.push_back((5 * i + 1) % 11);
    }
  }
  iso::batch batch() const { return {tokens, targets}; }
};

using session = iso::device<target>::session;

session load(const iso::training_options& o) {
  auto device = iso::device<target>::open({.threads = 1, .name = {}});
  auto plan = iso::plan_training<target>(loss, o);
  EXPECT_TRUE(plan.ok()) << plan.error().line();
  auto s = device->load(std::move(*plan));
  EXPECT_TRUE(s.ok());
  s->initialize(3);
  return std::move(*s);
}

std::vector<float> read(const session& s, tensor_kind what, std::size_t k) {
  std::vector<float> v(std::size_t(s.parameters()[k].dims.count()));
  EXPECT_TRUE(s.read(what, k, v).ok());
  return v;
}

iso::param_group slow_embeddings(std::string_view path, const iso::shape&, iso::param_group given) {
  if (path.starts_with("wte") || path.starts_with("wpe")) given.rate_scale = 0.5;
  if (path.ends_with("ln_f.bias")) given.trainable = false;
  return given;
}

TEST(TrainingOptions, DecomposedOpsGiveTheSameLossAndNorm) {
  const data d;
  const auto batch = d.batch();
  auto whole = load({}), parts = load({.decompose_all = true});
  int decomposed = 0;
  for (const auto& s : parts.plan().steps) decomposed += s.decomposed ? 1 : 0;
  EXPECT_GT(decomposed, 10);
  for (const auto& s : parts.plan().steps) EXPECT_NE(s.op, &iso::info<iso::op::layer_norm>) << "an op that can be decomposed was not";
  const auto a = whole.step(batch, {}), b = parts.step(batch, {});
  // Everything is f64. A decomposition reorders a few hundred operations, each with a relative error of 2^-53.
  EXPECT_LE(std::abs(a.loss - b.loss), 1e-12 * std::abs(a.loss));
  EXPECT_LE(std::abs(a.grad_norm - b.grad_norm), 1e-11 * a.grad_norm);
}

TEST(TrainingOptions, TheReportCountsDecomposedLaunches) {
  auto s = load({.decompose_all = true});
  const auto report = iso::dispatch_report(s.plan(), s.launches(), "reference", "");
  EXPECT_EQ(report.find("\tcommon 0"), std::string::npos);
  EXPECT_NE(report.find("\thost 0"), std::string::npos);
  EXPECT_NE(report.find("# temporaries\tunshared "), std::string::npos);
}

TEST(TrainingOptions, AGroupScalesTheLearningRateOfItsParameters) {
  const data d;
  const auto batch = d.batch();
  auto plain = load({}), grouped = load({.group = &slow_embeddings});
  const iso::step_scalars x{.learning_rate = 1e-2f};
  const auto start = load({});
  static_cast<void>(plain.step(batch, x));
  static_cast<void>(grouped.step(batch, x));
  ASSERT_EQ(plain.parameters().size(), grouped.parameters().size());
  for (std::size_t k = 0; k < plain.parameters().size(); ++k) {
    const auto path = plain.parameters()[k].path.view();
    ASSERT_EQ(path, grouped.parameters()[k].path.view());
    const auto w0 = read(start, tensor_kind::parameter, k), w1 = read(plain, tensor_kind::parameter, k),
               w2 = read(grouped, tensor_kind::parameter, k);
    for (std::size_t i = 0; i < w0.size(); ++i) {
      const double full = double(w1[i]) - double(w0[i]), got = double(w2[i]) - double(w0[i]);
      const double want = path == "ln_f.bias" ? 0 : path.starts_with("w") ? 0.5 * full : full;
      // Weights are below 2 and read as f32: three roundings of at most 2^-24.
      EXPECT_LE(std::abs(got - want), 4e-7) << path << ' ' << i;
    }
  }
}

TEST(TrainingOptions, AFrozenParameterHasNoGradientAndNoState) {
  auto s = load({.group = &slow_embeddings});
  for (std::size_t k = 0; k < s.parameters().size(); ++k)
    if (s.parameters()[k].path.view() == "ln_f.bias") {
      std::vector<float> v(16);
      const auto gradient = s.read(tensor_kind::gradient, k, v);
      ASSERT_FALSE(gradient.ok());
      EXPECT_EQ(gradient.error().code, iso::errc::not_found);
    }
}

TEST(TrainingOptions, AdaptersAreTrainedAloneAndBeginAsTheModel) {
  static constexpr std::string_view layers[] = {"attn.c_attn", "c_proj"};
  const iso::nn::adapted model{loss, iso::nn::lora{2, 4, layers}};
  auto device = iso::device<target>::open({.threads = 1, .name = {}});
  for (const auto update : {iso::update_policy::after_backward, iso::update_policy::within_backward}) {
    const auto clip = update == iso::update_policy::after_backward ? iso::clipping::global_norm : iso::clipping::none;
    auto plan = iso::plan_training<target>(model, {.clip = clip, .update = update});
    ASSERT_TRUE(plan.ok()) << plan.error().line();
    auto s = device->load(std::move(*plan));
    ASSERT_TRUE(s.ok());
    s->initialize(3);
    const data d;
    const auto before = load({});
    const iso::step_report first = s->step(d.batch(), {.learning_rate = 1e-2f});
    EXPECT_EQ(first.loss, load({}).step(d.batch(), {}).loss) << "B is 0, so the product adds 0";
    const iso::step_report second = s->step(d.batch(), {.learning_rate = 1e-2f});
    EXPECT_LT(second.loss, first.loss);
    std::size_t adapters = 0, next = 0;
    for (std::size_t k = 0; k < s->parameters().size(); ++k) {
      const iso::slot& x = s->parameters()[k];
      const bool adapter = iso::nn::is_adapter(x.path.view());
      adapters += adapter ? 1 : 0;
      EXPECT_EQ(x.trained, adapter) << x.path.view();
      EXPECT_EQ(s->keeps(tensor_kind::moment1, k), adapter) << x.path.view();
      EXPECT_EQ(s->keeps(tensor_kind::gradient, k), adapter && update == iso::update_policy::after_backward) << x.path.view();
      if (adapter) continue;
      EXPECT_EQ(read(*s, tensor_kind::parameter, k), read(before, tensor_kind::parameter, next++)) << x.path.view();
    }
    EXPECT_EQ(adapters, 12u) << "three layers in each of two blocks have an A and a B";
    EXPECT_EQ(next, before.parameters().size());
  }
}

TEST(TrainingOptions, ClippingByValueBoundsEveryGradient) {
  const data d;
  const auto batch = d.batch();
  auto free = load({}), clipped = load({.clip = iso::clipping::value});
  const double bound = 1e-3;
  static_cast<void>(free.step(batch, {}));
  iso::step_scalars x;
  x.clip_value = float(bound);
  static_cast<void>(clipped.step(batch, x));
  int cut = 0;
  for (std::size_t k = 0; k < free.parameters().size(); ++k) {
    const auto a = read(free, tensor_kind::gradient, k), b = read(clipped, tensor_kind::gradient, k);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float limit = float(double(x.clip_value)), want = std::min(std::max(a[i], -limit), limit);
      EXPECT_EQ(b[i], want);
      cut += a[i] != want ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 0) << "no gradient was clipped, so the test shows nothing";
}

TEST(TrainingOptions, ClippingByTensorNormScalesEachTensorAlone) {
  const data d;
  const auto batch = d.batch();
  auto free = load({}), clipped = load({.clip = iso::clipping::tensor_norm});
  static_cast<void>(free.step(batch, {}));
  iso::step_scalars x;
  x.clip_norm = 0.05f;
  static_cast<void>(clipped.step(batch, x));
  int scaled = 0, kept = 0;
  for (std::size_t k = 0; k < free.parameters().size(); ++k) {
    const auto a = read(free, tensor_kind::gradient, k), b = read(clipped, tensor_kind::gradient, k);
    double sum = 0;
    for (float g : a) sum += double(g) * double(g);
    const double factor = std::min(1.0, double(x.clip_norm) / (std::sqrt(sum) + 1e-6));
    (factor < 1 ? scaled : kept) += 1;
    // Gradients are read as f32 twice, with a relative error of 2^-23, and the norm of f32 values has the same error.
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_LE(std::abs(double(b[i]) - factor * double(a[i])), 4e-7 * std::abs(double(a[i])) + 1e-30);
  }
  EXPECT_GT(scaled, 0);
  EXPECT_GT(kept, 0);
}

TEST(StepCount, TheSessionCountsUpdatesAndStartsOverOnRequest) {
  const data d;
  const auto batch = d.batch();
  auto counted = load({}), told = load({});
  iso::step_scalars x{.optimizer_step = 0, .learning_rate = 1e-2f};
  EXPECT_EQ(counted.step_count(), 0);
  for (int t = 1; t <= 3; ++t) {
    const auto a = counted.step(batch, x), b = told.step(batch, {.optimizer_step = t, .learning_rate = 1e-2f});
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(counted.step_count(), t);
  }
  for (std::size_t k = 0; k < told.parameters().size(); ++k)
    EXPECT_EQ(read(counted, tensor_kind::parameter, k), read(told, tensor_kind::parameter, k));
  counted.reset_step();
  EXPECT_EQ(counted.step_count(), 0);
  static_cast<void>(counted.step(batch, x));
  EXPECT_EQ(counted.step_count(), 1);
}

TEST(StepCount, ASkippedStepDoesNotCount) {
  const data d;
  const auto batch = d.batch();
  auto s = load({});
  std::vector<float> w(std::size_t(s.parameters()[0].dims.count()), std::nanf(""));
  ASSERT_TRUE(s.write(tensor_kind::parameter, 0, w).ok());
  EXPECT_TRUE(s.step(batch, {.optimizer_step = 0}).skipped);
  EXPECT_EQ(s.step_count(), 0);
}

struct sum_of_products {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return sum(s.param("w", {256}, iso::init::ones) * s.input("x", {256}));
  }
};
// Small jobs run on the calling thread, large ones in the pool. Both keep subnormals, even if the caller's thread flushes them.
TEST(Subnormals, AreKeptWhereTheCallerFlushesThem) {
  using portable = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::portable>;
  for (const int threads : {1, 4}) {
    auto device = iso::device<portable>::open({.threads = threads, .name = {}});
    auto s = device->load(*iso::plan_training<portable>(sum_of_products{}, {.optimizer = iso::optimizer_kind::none}));
    ASSERT_TRUE(s.ok());
    s->initialize(1);
    ASSERT_TRUE(s->write(tensor_kind::parameter, 0, std::vector<float>(256, 0x1p-130f)).ok());
    auto x = s->template input<float>("x");
    ASSERT_TRUE(x.ok());
    for (float& v : *x) v = 0.5f;
    double total = 0;
    {
      const iso::cpu::float_environment caller(iso::cpu::subnormals::flush);
      total = s->run({}).loss;
    }
    EXPECT_EQ(total, 0x1p-123) << threads << " threads";
  }
}

TEST(Counters, AStepMovesTheBatchAndTheScalarsInAndLossAndNormOut) {
  const data d;
  const auto batch = d.batch();
  auto s = load({});
  static_cast<void>(s.step(batch, {}));
  const auto before = s.counters();
  static_cast<void>(s.step(iso::batch{d.targets, d.tokens}, {}));
  const auto& after = s.counters();
  EXPECT_EQ(after.bytes_in - before.bytes_in, 2 * 16 * 4 + std::int64_t(sizeof(iso::step_scalars)));
  EXPECT_EQ(after.bytes_out - before.bytes_out, 2 * 8);
  EXPECT_EQ(after.launches - before.launches, std::int64_t(s.plan().steps.size()));
}

}  // namespace options_test
