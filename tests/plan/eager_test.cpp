#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"

using namespace plan_test;

namespace eager_test {

/// Loss and gradients of a model run op by op.
template <class T, class Model> outcome run_eagerly(const Model& model) {
  using namespace isotope;
  using E = typename T::precision::storage;
  cpu::eager<T> machine(3);
  machine.scalars = scalars();
  const auto set = [&]<class V>(std::string_view label, const std::vector<V>& values) { machine.set(label, std::span<const V>(values)); };
  set("x", input_values<E>("x", Model::x_count));
  for (const char* label : {"targets", "ids", "tokens"}) set(label, input_values<std::int32_t>(label, Model::ids_count));
  const auto loss = model(scope<cpu::eager<T>>{&machine, {}});
  differentiate(machine, loss.id);
  EXPECT_TRUE(machine.ok()) << machine.g.error.view();
  outcome r;
  if (!machine.ok()) return r;
  r.loss = machine.read(loss)[0];
  for (const auto& p : machine.g.params) {
    if (!p.trainable) continue;  // the plan has no gradient to read either
    auto& values = r.gradients[std::string(p.path.view())];
    if (p.grad < 0) values.assign(std::size_t(machine.describe(p.value).dims.count()), 0.0f);  // the plan's region starts at zero
    else
      for (double g : machine.read(p.grad)) values.push_back(float(g));
  }
  return r;
}
template <class T, class Model> outcome run_planned(const Model& model) {
  auto r = step<T>(planned<T>(model));
  r.norm = 0;  // eager has no optimiser
  r.parameters.clear();
  return r;
}

struct sized_random_model : random_model {
  static constexpr std::int64_t x_count = R * C, ids_count = R;
};
struct small_gpt : isotope::model::gpt_loss_of {
  static constexpr std::int64_t x_count = 0, ids_count = 10;
};
struct small_mlp : isotope::model::mlp_loss_of {
  static constexpr std::int64_t x_count = 10, ids_count = 5;
};

template <class T> struct eager : testing::Test {};
TYPED_TEST_SUITE(eager, reference_targets, target_name);

// No tolerance: both run the reference kernels, and a plan only reorders, fuses and places.
TYPED_TEST(eager, gives_the_bits_of_the_plan_on_random_graphs) {
  check_property(20240602, 200, 60, [] {
    const sized_random_model model{*random_models()};
    RC_ASSERT(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)) == "");
  });
}

TYPED_TEST(eager, gives_the_bits_of_the_plan_on_gpt) {
  const small_gpt model{{{2, 2, 16, 11, 6, 0.1}, 2, 5}};
  EXPECT_EQ(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)), "");
}

TYPED_TEST(eager, gives_the_bits_of_the_plan_on_mlp) {
  const small_mlp model{{{2, 7, 2, 4}, 5}};
  EXPECT_EQ(difference(run_eagerly<TypeParam>(model), run_planned<TypeParam>(model)), "");
}

TEST(eager_errors, an_input_without_data_is_named) {
  isotope::cpu::eager<on_cpu<isotope::precision::f32, isotope::kernels::reference>> machine;
  const auto x =
      isotope::scope<isotope::cpu::eager<on_cpu<isotope::precision::f32, isotope::kernels::reference>>>{&machine, {}}.input("x", {2, 2});
  EXPECT_FALSE(x.valid());
  EXPECT_NE(machine.g.error.view().find("'x' needs 16 bytes of data"), std::string_view::npos) << machine.g.error.view();
}

}  // namespace eager_test
