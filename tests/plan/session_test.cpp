/// The behaviour of sessions on every backend: which inputs a run reads and a batch replaces, what is refused before anything runs, how steps are counted.
#include <isotope/train/session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "outcome.hpp"

using namespace plan_test;

namespace session_test {

/// A loss of classes whose logits are scaled by an input, so that the program reads a floating-point input besides ids.
struct scaled_classes {
  int rows = 4;
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto tokens = s.input("tokens", {rows}, isotope::dtype::i32), targets = s.input("targets", {rows}, isotope::dtype::i32);
    const auto gain = cast(s.input("gain", {1, 8}, isotope::dtype::f32), s.machine->program());
    return cross_entropy(embedding(s.param("w", {8, 8}, isotope::init::normal(1)), tokens) * gain, targets);
  }
};
/// The loss without the scaling input.
struct classes {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto tokens = s.input("tokens", {4}, isotope::dtype::i32), targets = s.input("targets", {4}, isotope::dtype::i32);
    return cross_entropy(embedding(s.param("w", {8, 8}, isotope::init::normal(1)), tokens), targets);
  }
};
const std::vector<std::int32_t> ids{1, 2, 3, 4}, next{2, 3, 4, 5}, zeros(4, 0), short_ids(3, 1);
const isotope::batch one{ids, next}, other{next, zeros}, bad{short_ids, next};

template <class T> class sessions : public testing::Test {
 public:
  using session = session_of<T>;
  static isotope::training_options still(bool accumulate = false) {
    return {.optimizer = isotope::optimizer_kind::none, .accumulate = accumulate};
  }
  template <class Model> static session open(const Model& model, const isotope::training_options& o) {
    auto evaluation = isotope::plan_inference<T>(model);
    EXPECT_TRUE(evaluation.ok()) << evaluation.error().line();
    auto device = opened<T>(2);
    auto s = device->load(planned<T>(model, o), *std::move(evaluation));
    EXPECT_TRUE(s.ok()) << s.error().line();
    s->initialize(3);
    return *std::move(s);
  }
  static void gain(session& s, float x) {
    const auto to = s.template input<float>("gain");
    ASSERT_TRUE(to.ok());
    for (float& v : *to) v = x;
  }
  static double loss(session& s, std::span<const isotope::batch> batches) { return s.step(batches, scalars()).loss; }
  static double loss(session& s, const isotope::batch& b) { return loss(s, {&b, 1}); }
};
TYPED_TEST_SUITE(sessions, every_target, target_name);

TYPED_TEST(sessions, every_micro_batch_reads_the_inputs_that_no_batch_replaces) {
  using F = TestFixture;
  auto s = F::open(scaled_classes{}, F::still(true));
  F::gain(s, 2);
  const double once = F::loss(s, one);
  const std::array<isotope::batch, 3> thrice{one, one, one};
  // The sum of three equal losses is rounded twice, and its third once.
  const auto rounded = [](double x) { return std::abs(x) * 0x1p-22; };
  EXPECT_NEAR(F::loss(s, thrice), once, rounded(once));
  F::gain(s, 3);
  const double larger = F::loss(s, one);
  EXPECT_NE(larger, once);
  EXPECT_NEAR(F::loss(s, thrice), larger, rounded(larger));
  for (int k = 0; k < 3; ++k) EXPECT_EQ(s.collect(s.submit(one, scalars())).loss, larger) << k;
}

TYPED_TEST(sessions, the_evaluation_reads_the_inputs_of_training_and_its_own) {
  using F = TestFixture;
  auto s = F::open(scaled_classes{}, F::still());
  F::gain(s, 2);
  const double loss = F::loss(s, one);
  EXPECT_NEAR(s.evaluate(one), loss, std::abs(loss) * 1e-5);
  auto device = opened<TypeParam>(1);
  auto alone = device->load(planned<TypeParam>(classes{}, F::still()), *isotope::plan_inference<TypeParam>(scaled_classes{}));
  ASSERT_TRUE(alone.ok()) << alone.error().line();
  alone->initialize(3);
  EXPECT_FALSE(alone->template input<float>("gain").ok());
  const auto own = alone->template input<float>("gain", 1);
  ASSERT_TRUE(own.ok()) << own.error().line();
  for (float& v : *own) v = 2;
  EXPECT_EQ(alone->evaluate(one), s.evaluate(one));
  EXPECT_FALSE(alone->template input<float>("loss", 1).ok());
}

TYPED_TEST(sessions, a_batch_takes_the_place_of_ids_that_were_written_by_hand) {
  using F = TestFixture;
  auto s = F::open(classes{}, F::still());
  const double fresh = F::loss(s, other);
  const auto tokens = s.template input<std::int32_t>("tokens"), targets = s.template input<std::int32_t>("targets");
  ASSERT_TRUE(tokens.ok() && targets.ok());
  std::fill(tokens->begin(), tokens->end(), 5);
  std::fill(targets->begin(), targets->end(), 7);
  EXPECT_NE(s.run(scalars()).loss, fresh);
  const double evaluated = s.evaluate(other);
  EXPECT_EQ(F::loss(s, other), fresh);
  EXPECT_EQ(s.evaluate(other), evaluated);
}

TYPED_TEST(sessions, a_run_without_a_batch_reads_the_latest_one_whichever_run_it_was_given_to) {
  using F = TestFixture;
  auto s = F::open(classes{}, F::still(true));
  const double first = F::loss(s, one), second = F::loss(s, other);
  ASSERT_NE(first, second);
  for (int runs = 1; runs <= 3; ++runs) {
    for (int k = 1; k <= runs; ++k) s.collect(s.submit(k == runs ? other : one, scalars()));
    EXPECT_EQ(s.run(scalars()).loss, second) << runs;
    const auto tokens = s.template input<std::int32_t>("tokens");
    ASSERT_TRUE(tokens.ok());
    EXPECT_TRUE(std::equal(tokens->begin(), tokens->end(), next.begin())) << runs;
    EXPECT_EQ(s.run(scalars()).loss, second) << runs;
    EXPECT_TRUE(s.put(one).ok());
    EXPECT_EQ(s.run(scalars()).loss, first) << runs;
    static_cast<void>(s.evaluate(other));
    EXPECT_EQ(s.run(scalars()).loss, second) << runs;
    static_cast<void>(F::loss(s, one));
    EXPECT_TRUE(s.put(other).ok()) << "whose numbers were put before";
    EXPECT_EQ(s.run(scalars()).loss, second) << runs;
    const std::array<isotope::batch, 2> both{other, one};
    s.step(both, scalars());
    EXPECT_EQ(s.run(scalars()).loss, first) << runs;
  }
}

TYPED_TEST(sessions, a_batch_of_another_size_is_refused_before_any_micro_batch_runs) {
  using F = TestFixture;
  auto s = F::open(classes{}, {.optimizer = isotope::optimizer_kind::sgd, .accumulate = true});
  auto untouched = F::open(classes{}, {.optimizer = isotope::optimizer_kind::sgd, .accumulate = true});
  const auto steps = s.counters().steps;
  const std::array<isotope::batch, 2> second_is_bad{one, bad};
  const auto report = s.step(second_is_bad, scalars());
  EXPECT_TRUE(report.skipped);
  EXPECT_TRUE(std::isnan(report.loss));
  EXPECT_EQ(s.counters().steps, steps);
  EXPECT_TRUE(std::isnan(s.evaluate(bad)));
  EXPECT_EQ(F::loss(s, one), F::loss(untouched, one));
  EXPECT_EQ(read_all(s, isotope::tensor_kind::parameter), read_all(untouched, isotope::tensor_kind::parameter));
}

TYPED_TEST(sessions, initialising_again_starts_the_same_training_again) {
  using F = TestFixture;
  auto s = F::open(classes{}, {});
  auto x = scalars();
  x.optimizer_step = 0;  // the session counts
  const auto train = [&] {
    std::vector<double> losses;
    for (int k = 0; k < 4; ++k) losses.push_back(s.step(one, x).loss);
    return losses;
  };
  const auto first = train();
  EXPECT_EQ(s.step_count(), 4);
  s.initialize(3);
  EXPECT_EQ(s.step_count(), 0);
  EXPECT_EQ(train(), first);
}

TYPED_TEST(sessions, steps_are_counted_whether_or_not_their_reports_are_collected) {
  using F = TestFixture;
  auto s = F::open(classes{}, {});
  auto x = scalars();
  x.optimizer_step = 0;
  const auto refused = s.submit(bad, x);
  EXPECT_TRUE(s.collect(refused).skipped);
  for (int k = 0; k < 3; ++k) static_cast<void>(s.submit(one, x));
  s.run(x);
  EXPECT_EQ(s.step_count(), 4);
  const auto late = s.submit(one, x);
  s.run(x);
  EXPECT_EQ(s.step_count(), 6);
  EXPECT_TRUE(std::isfinite(s.collect(late).loss));
  EXPECT_EQ(s.step_count(), 6);
  s.run(x);
  EXPECT_EQ(s.step_count(), 7);
}

TYPED_TEST(sessions, as_many_steps_in_flight_as_there_can_be_give_the_bits_of_one_after_the_other) {
  using F = TestFixture;
  auto alone = F::open(classes{}, {}), ahead = F::open(classes{}, {});
  constexpr std::size_t steps = 3 * decltype(ahead)::frames + 2;
  std::vector<double> want, got;
  std::vector<isotope::pending_step> flying;
  for (std::size_t k = 0; k < steps; ++k) {
    const isotope::batch& b = k % 3 == 0 ? one : other;
    want.push_back(F::loss(alone, b));
    const auto tokens = ahead.template next_input<std::int32_t>("tokens"), targets = ahead.template next_input<std::int32_t>("targets");
    ASSERT_TRUE(tokens.ok() && targets.ok());
    std::copy(b.tokens.begin(), b.tokens.end(), tokens->begin());
    std::copy(b.targets.begin(), b.targets.end(), targets->begin());
    flying.push_back(ahead.submit(scalars()));
    if (flying.size() < decltype(ahead)::frames) continue;
    const std::size_t half = (flying.size() + 1) / 2;
    static_cast<void>(ahead.collect(flying[half - 1]));  // waits for all before it
    for (std::size_t i = 0; i < half; ++i) got.push_back(ahead.collect(flying[i]).loss);
    flying.erase(flying.begin(), flying.begin() + std::ptrdiff_t(half));
  }
  for (const auto& p : flying) got.push_back(ahead.collect(p).loss);
  EXPECT_EQ(got, want);
  EXPECT_EQ(read_all(ahead, isotope::tensor_kind::parameter), read_all(alone, isotope::tensor_kind::parameter));
  EXPECT_EQ(ahead.step_count(), alone.step_count());
  EXPECT_EQ(ahead.run(scalars()).loss, F::loss(alone, other)) << "a run without a batch reads the latest one";
  EXPECT_FALSE(ahead.template next_input<double>("tokens").ok());
  EXPECT_FALSE(ahead.template next_input<std::int32_t>("no such input").ok());
}

TYPED_TEST(sessions, an_output_is_that_of_the_last_step_also_while_it_is_in_flight) {
  using F = TestFixture;
  auto s = F::open(classes{}, F::still(true));
  const auto seen = [&] {
    const auto l = s.template output<float>("loss");
    EXPECT_TRUE(l.ok()) << l.error().line();
    return double((*l)[0]);
  };
  const std::array<isotope::batch, 2> both{one, other};
  const auto report = s.step(both, scalars());
  EXPECT_EQ(seen(), report.loss * 2) << "the sum over the micro-batches";
  const double first = F::loss(s, one), second = F::loss(s, other);
  ASSERT_NE(first, second);
  EXPECT_EQ(seen(), second);
  for (int k = 0; k < 3; ++k) {
    const auto a = s.submit(one, scalars());
    const auto b = s.submit(other, scalars());
    EXPECT_EQ(seen(), second) << k;
    EXPECT_EQ(s.collect(a).loss, first) << k;
    EXPECT_EQ(s.collect(b).loss, second) << k;
    static_cast<void>(s.submit(one, scalars()));
    EXPECT_EQ(seen(), first) << k;
    s.run(scalars());
    EXPECT_EQ(seen(), first) << k;
  }
  static_cast<void>(s.submit(other, scalars()));
  static_cast<void>(s.evaluate(one));
  EXPECT_EQ(seen(), second) << "an evaluation has its own outputs";
}

TYPED_TEST(sessions, a_session_that_was_moved_goes_on) {
  using F = TestFixture;
  auto s = F::open(classes{}, {}), t = F::open(classes{}, {});
  const double first = F::loss(s, one), second = F::loss(s, other);
  EXPECT_EQ(F::loss(t, one), first);
  auto moved = std::move(t);
  t = F::open(classes{}, {});
  EXPECT_EQ(F::loss(moved, other), second);
  EXPECT_EQ(F::loss(t, one), first);
}

TYPED_TEST(sessions, tensors_of_another_length_and_slots_that_are_not_there_are_refused) {
  using F = TestFixture;
  auto s = F::open(classes{}, {});
  std::vector<float> values(64), few(63);
  for (const auto what : {isotope::tensor_kind::parameter, isotope::tensor_kind::gradient, isotope::tensor_kind::moment1}) {
    EXPECT_TRUE(s.read(what, 0, values).ok());
    EXPECT_EQ(s.read(what, 0, few).error().code, isotope::errc::invalid_argument);
    EXPECT_EQ(s.write(what, 0, few).error().code, isotope::errc::invalid_argument);
    EXPECT_EQ(s.read(what, 1, values).error().code, isotope::errc::not_found);
    EXPECT_EQ(s.write(what, 1, values).error().code, isotope::errc::not_found);
  }
}

/// A loss of three parameters.
struct three_tensors {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto tokens = s.input("tokens", {4}, isotope::dtype::i32), targets = s.input("targets", {4}, isotope::dtype::i32);
    const auto x = embedding(s.param("w", {8, 8}, isotope::init::normal(1)), tokens) * s.param("gain", {1, 8}, isotope::init::normal(1));
    return cross_entropy(x + s.param("shift", {1, 8}, isotope::init::normal(1)), targets);
  }
};

TYPED_TEST(sessions, tensors_read_together_are_those_read_one_by_one) {
  using F = TestFixture;
  using isotope::tensor_kind;
  auto s = F::open(three_tensors{}, {});
  F::loss(s, one);
  std::vector<isotope::tensor_read> all;
  std::vector<std::vector<float>> together, alone;
  for (const auto what : {tensor_kind::gradient, tensor_kind::parameter, tensor_kind::moment2, tensor_kind::moment1})
    for (std::size_t k = s.parameters().size(); k-- > 0;) {
      const auto n = std::size_t(s.parameters()[k].dims.count());
      together.emplace_back(n);
      alone.emplace_back(n);
      all.push_back({what, k, {}});
      ASSERT_TRUE(s.read(what, k, alone.back()).ok());
    }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].out = together[i];
  ASSERT_TRUE(s.read(all).ok());
  EXPECT_EQ(together, alone);
  EXPECT_NE(together.front(), std::vector<float>(together.front().size())) << "gradients are not all zero";
  EXPECT_TRUE(s.read(std::span<const isotope::tensor_read>()).ok());
  all[1].slot = 3;
  EXPECT_EQ(s.read(all).error().code, isotope::errc::not_found);
  all[1] = {tensor_kind::parameter, 0, std::span(together[0]).first(3)};
  EXPECT_EQ(s.read(all).error().code, isotope::errc::invalid_argument);
}

/// A loss of a table and a shift that is not trained.
struct frozen_shift {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto tokens = s.input("tokens", {4}, isotope::dtype::i32), targets = s.input("targets", {4}, isotope::dtype::i32);
    const auto shift = s.param("shift", {8}, isotope::param_options{.init = isotope::init::normal(1), .trainable = false});
    return cross_entropy(embedding(s.param("w", {8, 8}, isotope::init::normal(1)), tokens) + shift, targets);
  }
};

TYPED_TEST(sessions, what_a_session_keeps_is_what_can_be_read) {
  using F = TestFixture;
  using isotope::tensor_kind, isotope::optimizer_kind;
  int kept = 0, not_kept = 0;
  for (const auto optimizer : {optimizer_kind::adamw, optimizer_kind::sgd, optimizer_kind::none}) {
    auto s = F::open(frozen_shift{}, {.optimizer = optimizer});
    static_assert(isotope::train::KnowsTensors<decltype(s)> && isotope::train::ReadsTogether<decltype(s)>);
    for (const auto what : {tensor_kind::parameter, tensor_kind::gradient, tensor_kind::moment1, tensor_kind::moment2})
      for (std::size_t k = 0; k < s.parameters().size(); ++k) {
        std::vector<float> values(std::size_t(s.parameters()[k].dims.count()));
        const auto read = s.read(what, k, values);
        EXPECT_EQ(s.keeps(what, k), read.ok()) << int(optimizer) << ", kind " << int(what) << ", slot " << k;
        ++(read ? kept : not_kept);
      }
    EXPECT_FALSE(s.keeps(tensor_kind::parameter, 2));
  }
  EXPECT_GT(kept, 9);
  EXPECT_GT(not_kept, 5);
}

/// 256 parameters of 2^28 numbers each, which with gradients and moments exceed the memory of any machine.
struct hundreds_of_gigabytes {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    auto total = s.input("x", {}, s.machine->program());
    for (int k = 0; k < 256; ++k) total = total + sum(s.param(std::to_string(k), {1 << 14, 1 << 14}, isotope::init::zeros));
    return total;
  }
};

TYPED_TEST(sessions, a_plan_beyond_the_memory_of_its_device_is_refused_with_both_sizes) {
  auto device = opened<TypeParam>(1);
  const auto s = device->load(planned<TypeParam>(hundreds_of_gigabytes{}, {}), {});
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, isotope::errc::out_of_memory);
  EXPECT_NE(s.error().line().find(" bytes were asked for, "), std::string::npos) << s.error().line();
}

TYPED_TEST(sessions, a_buffer_has_a_length_that_memory_can_have) {
  auto device = opened<TypeParam>(1);
  for (const std::int64_t length : {std::int64_t(-1), std::int64_t(1) << 62, std::numeric_limits<std::int64_t>::max()}) {
    const auto b = device->template allocate<float>(length);
    ASSERT_FALSE(b.ok()) << length;
    EXPECT_EQ(b.error().code, isotope::errc::invalid_argument);
  }
  const auto none = device->template allocate<float>(0);
  EXPECT_TRUE(none.ok() && none->span().empty());
}

}  // namespace session_test
