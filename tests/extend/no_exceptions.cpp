// Core, ops, planner, layers, models and a small backend compile without exceptions and run-time type information.
#include "toy_backend.hpp"

#include <isotope/core/backend_list.hpp>
#include <isotope/core/philox.hpp>
#include <isotope/core/step.hpp>
#include <isotope/train/batch.hpp>

namespace iso = isotope;
using here = iso::target<toy::backend, iso::precision::f32, iso::kernels::reference>;

struct loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    return mean(square(tanh(iso::nn::linear(s, s.input("x", {4, 2}), 1))));
  }
};
using step = iso::training<loss, here, iso::training_options{.optimizer = iso::optimizer_kind::sgd}>;

bool trains() {
  auto device = iso::device<here>::open();
  return device && device->load<step>()->run({}).loss > 0 && iso::plan_training<here>(loss{}) &&
         iso::backend_list<toy::backend>::find("toy");
}
