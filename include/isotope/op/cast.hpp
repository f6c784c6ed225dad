#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// attributes: i[0] the dtype of the result.
struct cast {
  static constexpr std::string_view name = "cast";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.format(r.attr.i[0])); }
  static constexpr void gradient(pullback& g) {
    attributes a;
    a.i[0] = std::int64_t(g.grad_type(0));
    g.give(0, g.dy().type() == dtype(a.i[0]) ? g.dy() : apply<cast>(place::current(), a, g.dy()));
  }
};
}  // namespace op

/// y[i] = x[i] in another format. To a narrower float: round to nearest, ties to even, NaN kept. Float to integer: toward
/// zero, NaN to 0. Out of range of an integer format: the nearest end. To boolean: x != 0. The same format gives x itself.
template <Machine M> constexpr tensor<M> cast(tensor<M> x, dtype to, place at = place::current()) {
  if (x.valid() && x.type() == to) return x;
  attributes a;
  a.i[0] = std::int64_t(to);
  return apply<op::cast>(at, a, x);
}
}  // namespace isotope
