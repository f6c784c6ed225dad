#pragma once
#include "div.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
struct log : unary_elementwise {
  static constexpr std::string_view name = "log";
  static constexpr void gradient(pullback& g) { g.give(0, isotope::div(g.dy(), g.x(0))); }
};
}  // namespace op

/// y[i] = ln x[i]. Any shape; -infinity at 0, NaN for negative x.
template <Machine M> constexpr tensor<M> log(tensor<M> x, place at = place::current()) { return apply<op::log>(at, {}, x); }
}  // namespace isotope
