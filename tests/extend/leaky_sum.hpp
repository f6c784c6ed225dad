#pragma once
/// An example of an op with its own kernel launch, as a user of the library would add it.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/core/tape.hpp>

namespace user {
struct leaky_sum_op {
  struct constants {
    bool reverse = false;  // from the last element backwards
    static constexpr constants of(const isotope::attributes& a) { return {.reverse = a.i[0] != 0}; }
    constexpr operator isotope::attributes() const { return {.i = {reverse}}; }
  };
  static constexpr std::string_view name = "leaky_sum";
  static constexpr void infer(isotope::shape_rule& r) {
    if (r.require(r.dims(0).rank >= 1, "needs an axis to sum along") && r.require(isotope::is_floating(r.type(0)), "needs numbers"))
      r.yield(r.dims(0), r.type(0));
  }
  static constexpr void gradient(isotope::pullback& g) {
    const constants other{.reverse = !constants::of(g.attr).reverse};
    g.give(0, isotope::apply<leaky_sum_op>(isotope::place::current(), other, g.dy()));
  }
};
/// y[..., i] = x[..., i] + y[..., i - 1] / 2.  x, y (..., N). @error x is a scalar
template <isotope::Machine M> constexpr isotope::tensor<M> leaky_sum(isotope::tensor<M> x, isotope::place at = isotope::place::current()) {
  return isotope::apply<leaky_sum_op>(at, {}, x);
}
}  // namespace user

template <class P> struct isotope::cpu::kernel<user::leaky_sum_op, P, isotope::kernels::reference> {
  static void run(const launch& l) {
    using E = typename P::storage;
    const auto N = l.out[0].dims.cols();
    for (std::int64_t row = 0; row < l.out[0].dims.rows(); ++row) {
      const E* x = l.in[0].template as<const E>() + row * N;
      E* y = l.out[0].template as<E>() + row * N;
      double sum = 0;
      for (std::int64_t k = 0; k < N; ++k) {
        const auto i = l.constants<user::leaky_sum_op>().reverse ? N - 1 - k : k;
        sum = sum / 2 + double(typename P::accum(x[i]));
        y[i] = E(typename P::accum(sum));
      }
    }
  }
};
