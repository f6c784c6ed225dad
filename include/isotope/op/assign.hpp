#pragma once
/// Assignment to a state, which a model keeps from run to run.
#include "../core/machine.hpp"
#include "../core/tensor.hpp"

namespace isotope {
/// state[i] = x[i] in every run. Ops that read the state after this read the result.
///
/// @param state  the result of scope.state or of an earlier assign
/// @param x      the shape and format of the state; no gradient passes through it
/// @error        a shape or a format differs; the state is a view
template <HoldsState M> constexpr tensor<M> assign(tensor<M> state, tensor<M> x, place at = place::current()) {
  return {state.machine, state.machine->assign(state.id, x.id, at)};
}
}  // namespace isotope
