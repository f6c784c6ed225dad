#pragma once
#include "mul.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct exp : unary_elementwise {
  static constexpr std::string_view name = "exp";
  static constexpr void gradient(pullback& g) { g.give(0, isotope::mul(g.dy(), g.y())); }
};
}  // namespace op

/// y[i] = e^x[i]. Any shape; overflows to infinity; NaN in, NaN out.
template <Machine M> constexpr tensor<M> exp(tensor<M> x, place at = place::current()) { return apply<op::exp>(at, {}, x); }
}  // namespace isotope
