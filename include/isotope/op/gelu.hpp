#pragma once
#include "add.hpp"
#include "binary.hpp"
#include "mul.hpp"
#include "scale.hpp"
#include "tanh.hpp"
#include "unary.hpp"

namespace isotope {
namespace op {
/// Operands x, dy: dx[i] = dy[i] (0.5 (1 + t) + 0.5 x[i] (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x[i]^2)), t the tanh of the forward.
struct gelu_tanh_grad : binary_elementwise {
  static constexpr std::string_view name = "gelu_tanh_grad";
  using gradient_of = struct gelu_tanh;
};
struct gelu_tanh : unary_elementwise {
  static constexpr std::string_view name = "gelu_tanh";
  static constexpr bool cheap = true;
  static constexpr void decompose(decomposition& d) {
    const auto x = d.x(0), cube = isotope::mul(isotope::mul(x, x, d.at), x, d.at);
    const auto inner = isotope::scale(isotope::add(x, isotope::scale(cube, 0.044715, d.at), d.at), 0.79788456080286535588, d.at);
    d.give(0, isotope::mul(isotope::scale(x, 0.5, d.at), isotope::shift(isotope::tanh(inner, d.at), 1.0, d.at), d.at));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<gelu_tanh_grad>(place::current(), {}, g.x(0), g.dy())); }
};
/// Operands x, dy: dx[i] = dy[i] (0.5 (1 + erf(x[i]/sqrt(2))) + x[i] exp(-x[i]^2/2) / sqrt(2 pi)).
struct gelu_erf_grad : binary_elementwise {
  static constexpr std::string_view name = "gelu_erf_grad";
  using gradient_of = struct gelu_erf;
};
struct gelu_erf : unary_elementwise {
  static constexpr std::string_view name = "gelu_erf";
  static constexpr bool cheap = true;
  static constexpr void gradient(pullback& g) { g.give(0, apply<gelu_erf_grad>(place::current(), {}, g.x(0), g.dy())); }
};
}  // namespace op

/// The forms of GELU, chosen by type: `gelu<op::gelu_erf>(x)`.
///
/// gelu_tanh: y[i] = 0.5 x[i] (1 + tanh(sqrt(2/pi) (x[i] + 0.044715 x[i]^3)))     used by GPT-2
/// gelu_erf:  y[i] = 0.5 x[i] (1 + erf(x[i] / sqrt(2)))                           used by BERT
///
/// @param x  (...)  any shape
/// @return   (...)  the shape of x
/// @error    none; NaN in, NaN out
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415.
template <class Form = op::gelu_tanh, Machine M> constexpr tensor<M> gelu(tensor<M> x, place at = place::current()) {
  return apply<Form>(at, {}, x);
}
}  // namespace isotope
