#pragma once
/// Writing to what a model keeps from run to run.
#include "../core/machine.hpp"
#include "../core/tensor.hpp"

namespace isotope {
/// state[i] = x[i], in every run; what reads the state from here on reads the result.
///
/// @param state  what scope.state gave, or an earlier assign
/// @param x      the shape and format of the state; no gradient passes through it
/// @error        a shape or a format differs; the state is a view
template <HoldsState M> constexpr tensor<M> assign(tensor<M> state, tensor<M> x, place at = place::current()) {
  return {state.machine, state.machine->assign(state.id, x.id, at)};
}
}  // namespace isotope
