#pragma once
/// Element-wise ops: the formula is evaluated in double and rounded to the compute type.
#include <concepts>
#include <cstdint>

#include <isotope/backend/cpu/launch.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

/// out[i] = f(in[0][i], ...) for a formula of one, two or three numbers; A is the compute type.
template <class A, class F> void each(const void* const* in, void* out, std::int64_t n, F f) {
  const auto x = [&](int k, std::int64_t i) { return double(static_cast<const A*>(in[k])[i]); };
  A* y = static_cast<A*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::invocable<F, double>) y[i] = A(f(x(0, i)));
    else if constexpr (std::invocable<F, double, double>) y[i] = A(f(x(0, i), x(1, i)));
    else y[i] = A(f(x(0, i), x(1, i), x(2, i)));
  }
}

/// Provides `block` for a kernel of Op whose `of` is the formula.
template <class Op, class P> struct each_of {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    using own = kernel<Op, P, kernels::reference>;
    each<typename P::accum>(in, out, n, [](auto... x) requires requires { own::of(x...); } { return own::of(x...); });
  }
};

/// Returns x, but at least `least`, where a gate has long reached its limit: this keeps 0 times infinity out of the formulas. NaN is kept.
inline double above(double x, double least) { return x < least ? least : x; }
inline double within(double x, double bound) { return x > bound ? bound : above(x, -bound); }

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference
