#pragma once
/// Runs a model op by op, and as a plan, which must give the same bits.
#include <isotope/eager/eager.hpp>

#include "outcome.hpp"
#include "random_model.hpp"

namespace plan_test {

/// Loss and gradients of a model run op by op.
template <class T, class Model> outcome run_eagerly(const Model& model) {
  using namespace isotope;
  using E = typename T::precision::storage;
  auto device = opened<T>(1);
  if (!device) throw std::runtime_error(device.error().line());  // a failed test, also inside a property
  eager<T> machine(*device, 3);
  machine.scalars = scalars();
  const auto set = [&]<class V>(std::string_view label, const std::vector<V>& values) { machine.set(label, std::span<const V>(values)); };
  set("x", input_values<E>("x", Model::x_count));
  for (const char* label : {"targets", "ids", "tokens"}) set(label, input_values<std::int32_t>(label, Model::ids_count));
  const auto loss = model(scope<eager<T>>{&machine, {}});
  differentiate(machine, loss.id);
  EXPECT_TRUE(machine.ok()) << machine.g.error.view();
  outcome r;
  if (!machine.ok()) return r;
  r.loss = machine.read(loss)[0];
  for (const auto& p : machine.g.params) {
    if (!p.trainable) continue;  // the plan keeps no gradient of it either
    auto& values = r.gradients[std::string(p.path.view())];
    if (p.grad < 0) values.assign(std::size_t(machine.describe(p.value).dims.count()), 0.0f);  // in the plan, unused gradients are zero
    else
      for (double g : machine.read(p.grad)) values.push_back(float(g));
  }
  EXPECT_TRUE(machine.ok()) << machine.g.error.view();
  return r;
}
/// Loss and gradients of the model's plan.
template <class T, class Model> outcome run_planned(const Model& model) {
  auto r = step<T>(planned<T>(model));
  r.norm = 0;  // eager has no optimiser
  r.parameters.clear();
  return r;
}

/// A random model and the sizes of its inputs.
struct sized_random_model : random_model {
  static constexpr std::int64_t x_count = R * C, ids_count = R;
};

}  // namespace plan_test
