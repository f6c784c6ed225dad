#pragma once
/// The recording Machine of a target.
#include "tape.hpp"
#include "target.hpp"

namespace isotope {

/// Records model code for a target: the planner's input. Also usable in constant expressions.
template <Target T> struct graph : tape {
  using target = T;
  constexpr graph() : tape(T::precision::type) {}
};

}  // namespace isotope
