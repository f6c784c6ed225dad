#pragma once
#include "fill.hpp"
#include "log.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "select.hpp"
#include "square.hpp"

namespace isotope {
namespace op {
struct pow : binary_elementwise {
  static constexpr std::string_view name = "pow";
  /// da[i] = dy[i] b[i] a[i]^(b[i] - 1), 0 where b[i] = 0; db[i] = dy[i] y[i] ln a[i], 0 where a[i] = 0 and y[i] is finite.
  static constexpr void gradient(pullback& g) {
    const auto a = g.x(0), b = g.x(1), zero = isotope::fill(g.machine(), {}, g.dy().type());
    if (g.wants(0)) {
      const auto slope = isotope::mul(b, apply<pow>(place::current(), {}, a, isotope::shift(b, -1.0)));
      give(g, 0, isotope::where(isotope::equal(b, zero), zero, isotope::mul(g.dy(), slope)));
    }
    if (g.wants(1)) {
      const auto slope = isotope::mul(g.y(), isotope::log(a)), product = isotope::mul(g.dy(), slope);
      give(g, 1, isotope::where(isotope::equal(a, zero), isotope::where(isotope::less(b, zero), product, zero), product));
    }
  }
};
}  // namespace op

/// y[i] = a[i]^b[i]; a and b broadcast as in NumPy. 1 where a[i] = 1 or b[i] = 0, else NaN where either is NaN; NaN for a negative a[i]
/// unless b[i] is whole; zeros and infinities as in C.
/// @error  shapes do not broadcast; integers; formats that do not mix
template <Machine M> constexpr tensor<M> pow(tensor<M> a, tensor<M> b, place at = place::current()) { return apply<op::pow>(at, {}, a, b); }
/// y[i] = x[i]^k, k rounded to the format of x; x^2 and x^3 are products.
template <Machine M> constexpr tensor<M> pow(tensor<M> x, double k, place at = place::current()) {
  if (k == 1) return x;
  if (k == 2) return square(x, at);
  if (k == 3) return mul(square(x, at), x, at);
  return pow(x, fill(*x.machine, {}, x.type(), k, at), at);
}
}  // namespace isotope
