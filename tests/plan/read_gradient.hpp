#pragma once
/// An op whose gradient rule reads a gradient that it has given. No op of the library does this, but ops of a program may.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/binary.hpp>
#include <isotope/op/mul.hpp>
#include <isotope/op/scale.hpp>

#include <string>

#include "outcome.hpp"

namespace plan_test {
struct quotient_op : isotope::op::binary_elementwise {
  static constexpr std::string_view name = "quotient";
  /// da = dy / b,  db = -da y
  static constexpr void gradient(isotope::pullback& g) {
    const auto da = isotope::div(g.dy(), g.x(1));
    if (g.wants(0)) give(g, 0, da);
    if (g.wants(1)) give(g, 1, isotope::scale(isotope::mul(da, g.y()), -1.0));
  }
};
}  // namespace plan_test

template <class P> struct isotope::cpu::kernel<plan_test::quotient_op, P, isotope::kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    using A = typename P::accum;
    for (std::int64_t i = 0; i < n; ++i) static_cast<A*>(out)[i] = static_cast<const A*>(in[0])[i] / static_cast<const A*>(in[1])[i];
  }
};

namespace plan_test {
using with_quotient =
    isotope::target<isotope::backend::cpu, isotope::precision::f32, isotope::kernels::reference,
                    boost::mp11::mp_list<isotope::cpu::kernel<quotient_op, isotope::precision::f32, isotope::kernels::reference>>>;

/// The gradient of the table is the sum of that of the quotient and that of the embedding, which is added in place. The gradient of the divisor must read it
/// before that addition.
struct table_twice {
  bool products;
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace init = isotope::init;
    const isotope::shape dims{6, 8};
    const auto table = s.param("table", dims, init::normal(0.5));
    const auto divisor = shift(square(tanh(s.param("g", dims, init::normal(0.5)))), 1.0);
    const auto rows = embedding(table, s.input("ids", {5}, isotope::dtype::i32));
    auto y = isotope::apply<quotient_op>(isotope::place::current(), {}, table, divisor);
    if (products) y = matmul(y, s.param("w", {8, 4}, init::normal(0.3)));
    return mean(square(y)) + mean(square(rows));
  }
};
/// The difference between the results of fused and of separate steps; empty: none.
inline std::string difference_of_a_read_gradient() {
  for (const bool products : {false, true}) {
    const table_twice model{products};
    const auto fused = planned<with_quotient>(model), separate = planned<with_quotient>(model, {.fuse = false});
    if (const auto found = difference(step<with_quotient>(fused), step<with_quotient>(separate)); !found.empty()) return found;
  }
  return "";
}

}  // namespace plan_test
