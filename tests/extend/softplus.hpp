#pragma once
/// An example of an element-wise op as a user of the library would add it: tag, formula, shape rule, gradient rule and cpu kernel in one header.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/mul.hpp>
#include <isotope/op/sigmoid.hpp>
#include <isotope/op/unary.hpp>

#include <cmath>

namespace user {
struct softplus_op : isotope::op::unary_elementwise {
  static constexpr std::string_view name = "softplus";
  static constexpr void gradient(isotope::pullback& g) { g.give(0, isotope::mul(g.dy(), isotope::sigmoid(g.x(0)))); }
};
/// y[i] = log(1 + exp(x[i])). Any shape; NaN in, NaN out.
template <isotope::Machine M> constexpr isotope::tensor<M> softplus(isotope::tensor<M> x, isotope::place at = isotope::place::current()) {
  return isotope::apply<softplus_op>(at, {}, x);
}
}  // namespace user

template <class P> struct isotope::cpu::kernel<user::softplus_op, P, isotope::kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    using A = typename P::accum;
    for (std::int64_t i = 0; i < n; ++i) {
      const A x = static_cast<const A*>(in[0])[i];
      static_cast<A*>(out)[i] = std::fmax(x, A(0)) + std::log1p(std::exp(-std::fabs(x)));  // does not overflow for large |x|
    }
  }
};
