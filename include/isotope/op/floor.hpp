#pragma once
#include "unary.hpp"

namespace isotope {
namespace op {
/// It has no gradient rule: nothing flows back through it, as its slope is 0.
struct floor : unary_elementwise {
  static constexpr std::string_view name = "floor";
};
}  // namespace op

/// y[i] = the largest whole number that is at most x[i]. Any shape; NaN in, NaN out; floor(-0) = -0. Its gradient is 0.
template <Machine M> constexpr tensor<M> floor(tensor<M> x, place at = place::current()) { return apply<op::floor>(at, {}, x); }
}  // namespace isotope
