#include <array>

#include <isotope/train/batch.hpp>

#include "exposed.hpp"
#include "property.hpp"
#include "random_model.hpp"

using namespace plan_test;
using isotope::phase_first;
using isotope::phase_last;
using isotope::phase_later;

namespace accumulation_test {

constexpr isotope::training_options accumulating{.accumulate = true};

/// Runs k micro-batches of one row each, and one batch of k rows, for comparison of gradients and parameters.
template <class T> struct both_ways {
  static constexpr int rows = 4, length = 5;
  using E = typename T::precision::accum;
  static constexpr isotope::model::gpt size{2, 2, 16, 11, 6};
  session_of<T> parts = loaded<T>(exposed<T>(planned<T>(isotope::model::gpt_loss_of{size, 1, length}, accumulating)));
  session_of<T> whole = loaded<T>(exposed<T>(planned<T>(isotope::model::gpt_loss_of{size, rows, length})));
  isotope::step_report by_parts, at_once;

  both_ways() {
    const auto tokens = input_values<std::int32_t>("tokens", rows * length), targets = input_values<std::int32_t>("targets", rows * length);
    std::array<isotope::batch, rows> micro;
    for (std::size_t i = 0; i < rows; ++i)
      micro[i] = {std::span(tokens).subspan(i * length, length), std::span(targets).subspan(i * length, length)};
    auto x = scalars();
    x.clip_norm = 0.5f;  // below the norm, so that the clipped update depends on the gradient's scale
    by_parts = parts.step(micro, x);
    const isotope::batch all{tokens, targets};
    at_once = whole.step(all, x);
  }
};

// The same products are summed in another order, which gives a few roundings of u |g|, relative to the largest element of each tensor.
TEST(accumulation, of_micro_batches_is_the_big_batch_in_f64) {
  both_ways<reference_f64> r;
  EXPECT_TRUE(relative_distance(all_values<double>(r.parts, "grad"), 0.25, all_values<double>(r.whole, "grad")) <= 1e-12);
  EXPECT_TRUE(std::fabs(r.by_parts.loss / r.at_once.loss - 1) <= 1e-12);
  EXPECT_TRUE(std::fabs(r.by_parts.grad_norm / r.at_once.grad_norm - 1) <= 1e-12);
  EXPECT_GT(r.at_once.grad_norm, 0.5);
  // Adam divides a gradient by its own magnitude. If that is near epsilon = 1e-8, a rounding error of 1e-16 becomes 1e-8 of the rate 0.01.
  EXPECT_TRUE(relative_distance(all_values<double>(r.parts, "param"), 1, all_values<double>(r.whole, "param")) <= 1e-9);
}

template <class T> struct accumulation : testing::Test {};
TYPED_TEST_SUITE(accumulation, every_target, target_name);

// f32 sums of gradients differ by 4 u of the largest element and by the order of 20 rows, below 1e-6. bf16 activations are the same row by row.
TYPED_TEST(accumulation, of_micro_batches_is_the_big_batch) {
  both_ways<TypeParam> r;
  EXPECT_TRUE(relative_distance(all_values<float>(r.parts, "grad"), 0.25, all_values<float>(r.whole, "grad")) <=
              (TypeParam::precision::type == isotope::dtype::f32 ? 1e-6 : 1e-2));
  EXPECT_TRUE(std::fabs(r.by_parts.loss / r.at_once.loss - 1) <= 1e-6);
}

TYPED_TEST(accumulation, of_one_micro_batch_is_the_plain_step_bit_for_bit) {
  const isotope::model::gpt_loss_of model{{1, 2, 16, 11, 6, 0.1}, 2, 5};
  EXPECT_EQ(difference(step<TypeParam>(planned<TypeParam>(model, accumulating)), step<TypeParam>(planned<TypeParam>(model))), "");
}

// Two equal micro-batches double the gradient. In f64, sums in another order differ by less than 1e-12 of the largest element.
TEST(accumulation, of_the_same_batch_twice_doubles_every_gradient_on_random_graphs) {
  check_property(20240604, affordable(200), 40, [] {
    const auto model = *random_models();
    auto twice = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model, accumulating)));
    auto once = loaded<reference_f64>(exposed<reference_f64>(planned<reference_f64>(model)));
    auto frozen = scalars();
    frozen.learning_rate = 0;
    twice.run(frozen, phase_first);
    const auto report = twice.run(frozen, phase_later | phase_last), single = once.run(frozen);
    RC_ASSERT(relative_distance(all_values<double>(twice, "grad"), 0.5, all_values<double>(once, "grad")) <= 1e-12);
    RC_ASSERT(std::fabs(report.loss - 2 * single.loss) <= 1e-12 * std::fabs(single.loss));
    // The next step must start with zero gradients.
    twice.run(frozen, phase_first);
    RC_ASSERT(relative_distance(all_values<double>(twice, "grad"), 1, all_values<double>(once, "grad")) <= 1e-12);
  });
}

struct masked_mean {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return mean(isotope::dropout(s.param("ones", {8, 32}, isotope::init::ones), 0.5));
  }
};
// A gradient element is (kept in the first + kept in the second micro-batch) / (0.5 256). With the same mask in both, every numerator would be even.
TEST(accumulation, draws_another_dropout_mask_for_each_micro_batch) {
  auto s = loaded<reference_f32>(exposed<reference_f32>(planned<reference_f32>(masked_mean{}, accumulating)));
  const std::array<isotope::batch, 2> two{};
  s.step(two, scalars());
  std::array<int, 3> kept{};
  for (float g : values<float>(s, "grad", "ones")) ++kept[std::size_t(g * 128.0f)];
  EXPECT_GT(kept[0], 20);
  EXPECT_GT(kept[1], 60);
  EXPECT_GT(kept[2], 20);
}

TEST(accumulation, of_several_micro_batches_needs_a_plan_made_for_it) {
  auto s = loaded<reference_f32>(planned<reference_f32>(masked_mean{}));
  const std::array<isotope::batch, 2> two{};
  const auto before = read_all(s, isotope::tensor_kind::parameter);
  EXPECT_TRUE(s.step(two, scalars()).skipped);
  EXPECT_EQ(read_all(s, isotope::tensor_kind::parameter), before);
}

}  // namespace accumulation_test
