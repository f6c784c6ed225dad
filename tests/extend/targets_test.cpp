// Programs of one model for several targets can run in one process, since they are different types.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <type_traits>

namespace targets_test {
namespace iso = isotope;
using loss = iso::model::mlp_loss<iso::model::mlp{.inputs = 4, .hidden = 16, .layers = 2, .classes = 3}, 6>;
template <class P, class K> using on = iso::target<iso::backend::cpu, P, K>;
using f32 = on<iso::precision::f32, iso::kernels::reference>;
using f32_portable = on<iso::precision::f32, iso::kernels::portable>;
using bf16 = on<iso::precision::bf16, iso::kernels::reference>;
using bf16_native = on<iso::precision::bf16, iso::kernels::native>;

static_assert(!std::is_same_v<iso::training<loss, f32>, iso::training<loss, bf16>>);
// bf16 parameters and activations take half the bytes; the f32 master copy is extra.
static_assert(iso::training<loss, bf16>::view().totals.region[std::size_t(iso::value_kind::param)] * 2 ==
              iso::training<loss, f32>::view().totals.region[std::size_t(iso::value_kind::param)]);
static_assert(iso::training<loss, f32>::view().totals.region[std::size_t(iso::value_kind::master)] == 0);
static_assert(iso::training<loss, bf16>::parameters == iso::training<loss, f32>::parameters);

/// Losses of the first and the last of 60 steps on six points of three classes.
template <class T> std::array<double, 2> train() {
  std::array<double, 2> r{NAN, NAN};
  auto device = iso::device<T>::open({.threads = 1});
  if (!device) return r;
  auto session = device->template load<iso::training<loss, T>>();
  if (!session) return r;
  session->initialize(3);
  auto x = session->template input<typename T::precision::storage>("x");
  auto targets = session->template input<std::int32_t>("targets");
  if (!x || !targets) return r;
  for (std::size_t i = 0; i < 24; ++i) (*x)[i] = typename T::precision::storage(std::sin(float(i) * 1.7f));
  for (std::size_t i = 0; i < 6; ++i) (*targets)[i] = std::int32_t(i % 3);
  iso::step_scalars scalars;
  scalars.learning_rate = 0.02f;
  for (int i = 1; i <= 60; ++i) {
    scalars.optimizer_step = i;
    const double now = session->run(scalars).loss;
    if (i == 1) r[0] = now;
    r[1] = now;
  }
  return r;
}

TEST(targets, precisions_and_kernel_sets_train_one_model_side_by_side) {
  const auto exact = train<f32>();
  EXPECT_GT(exact[0], 0.8);  // a uniform guess has a loss of ln 3 = 1.10
  EXPECT_LT(exact[1], 0.1);
  const auto portable = train<f32_portable>();
  // f32 sums of at most 16 products have a relative error of 16 u = 1e-6, in each of three layers.
  EXPECT_NEAR(portable[0], exact[0], 1e-5);
  EXPECT_LT(portable[1], 0.1);
  for (const auto& half : {train<bf16>(), train<bf16_native>()}) {
    // Three layers round weights and activations to 2^-9: at most 6 roundings of numbers around 2 before the loss.
    EXPECT_NEAR(half[0], exact[0], 6 * 2 * 0x1p-9);
    EXPECT_LT(half[1], 0.15);
  }
}
}  // namespace targets_test
