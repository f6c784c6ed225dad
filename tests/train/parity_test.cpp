#include <gtest/gtest.h>

#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/train/parity.hpp>

namespace erring_kernels {

/// A kernel set of one kernel: attention that errs in its n-th call.
struct broken {
  static constexpr std::string_view name = "broken";
  static inline int calls = 0, errs_in = -1;
};

}  // namespace erring_kernels

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
template <> struct kernel<op::attention, precision::f32, erring_kernels::broken> {
  using right = kernel<op::attention, precision::f32, kernels::reference>;
  static constexpr std::int64_t scratch(const step_shapes& s) { return right::scratch(s); }
  static void run(const launch& l) {
    right::run(l);
    if (erring_kernels::broken::calls++ == erring_kernels::broken::errs_in) l.out[0].as<float>()[5] += 0.5f;
  }
};
}  // namespace arch
}  // namespace isotope::cpu

namespace isotope::train {
namespace parity_test {

using sound = target<backend::cpu, precision::f32, kernels::reference>;
using faulty = target<backend::cpu, precision::f32, kernels::reference,
                      boost::mp11::mp_list<cpu::kernel<op::attention, precision::f32, erring_kernels::broken>>>;
constexpr model::gpt size{3, 2, 16, 20, 8};

template <class T> auto loaded() {
  auto plan = plan_training<T>(model::gpt_loss_of{size, 2, 8});
  EXPECT_TRUE(plan.ok());
  auto s = device<T>::open({.threads = 1})->load(*std::move(plan));
  s->initialize(1);
  return *std::move(s);
}
const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                                targets = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
const batch data{tokens, targets};

TEST(parity, of_a_backend_with_itself_is_exact) {
  erring_kernels::broken::errs_in = -1;
  auto a = loaded<sound>();
  auto b = loaded<faulty>();
  parity both(a, b, gate_of(dtype::f32));
  ASSERT_TRUE(both.same_plans().ok());
  for (int i = 1; i <= 3; ++i) {
    const auto p = both.step(data, {.optimizer_step = i});
    EXPECT_EQ(p.loss_a, p.loss_b);
    EXPECT_EQ(p.norm_a, p.norm_b);
    EXPECT_TRUE(p.within(gate_of(dtype::f32)));
  }
  auto where = both.locate(data, {.optimizer_step = 4});
  ASSERT_TRUE(where.ok()) << where.error().line();
  EXPECT_FALSE(where->has_value());
}
TEST(parity, a_bug_in_layer_k_is_located_in_layer_k) {
  for (int layer = 0; layer < 3; ++layer) {
    auto a = loaded<sound>();
    auto b = loaded<faulty>();
    parity both(a, b, gate_of(dtype::f32));
    erring_kernels::broken::calls = 0;
    erring_kernels::broken::errs_in = layer;
    const auto p = both.step(data, {});
    EXPECT_FALSE(p.within(gate_of(dtype::f32))) << p.loss_difference();
    erring_kernels::broken::calls = 0;
    auto where = both.locate(data, {});
    ASSERT_TRUE(where.ok()) << where.error().line();
    ASSERT_TRUE(where->has_value());
    EXPECT_EQ((*where)->op, "attention");
    EXPECT_NE((*where)->near.find("h." + std::to_string(layer) + ".attn"), std::string::npos) << (*where)->near;
    EXPECT_LE((*where)->worst_before, 1e-6);
  }
}
TEST(parity, nan_is_outside_every_gate) {
  const parity_step p{1, 1.0, std::nan(""), 1.0, 1.0};
  EXPECT_FALSE(p.within({1e9, 1e9, 1e9}));
}
TEST(parity, plans_of_other_models_are_refused_with_the_first_step_that_differs) {
  auto a = loaded<sound>();
  auto plan = plan_training<sound>(model::gpt_loss_of{model::gpt{1, 2, 16, 20, 8}, 2, 8});
  auto b = device<sound>::open({.threads = 1})->load(*std::move(plan));
  parity both(a, *b, gate_of(dtype::f32));
  const auto r = both.same_plans();
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, errc::model_mismatch);
}

}  // namespace parity_test
}  // namespace isotope::train
