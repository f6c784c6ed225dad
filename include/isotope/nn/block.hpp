#pragma once
#include "../core/scope.hpp"
#include "../core/tape.hpp"

namespace isotope::nn {

/// Evaluates f(s, x) as one block, the unit of activation recomputation (training_options::recompute). Its values are marked with the block's number.
template <Machine M, class F> constexpr tensor<M> block(scope<M> s, tensor<M> x, const F& f) {
  if (s.machine == nullptr) return x;
  const auto outer = s.machine->block;
  s.machine->block = s.machine->g.blocks++;
  const auto y = f(s, x);
  s.machine->block = outer;
  return y;
}

}  // namespace isotope::nn
