#pragma once
#include "divided_axis.hpp"

namespace isotope {
namespace op {
struct cast {
  struct constants {
    format_number to{};  // the format of the result
    static constexpr constants of(const attributes& a) { return {.to = format_number(a.i[0])}; }
    constexpr operator attributes() const { return {.i = {to.number}}; }
  };
  static constexpr std::string_view name = "cast";
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.format(constants::of(r.attr).to)); }
  static constexpr void shard(sharding& s) { shard_like_first(s); }
  static constexpr void gradient(pullback& g) {
    const dtype to = g.grad_type(0);
    g.give(0, g.dy().type() == to ? g.dy() : apply<cast>(place::current(), constants{.to = to}, g.dy()));
  }
};
}  // namespace op

/// y[i] = x[i] in another format. To a narrower float: round to nearest, ties to even, NaN kept. Float to integer: toward
/// zero, NaN to 0. Out of range of an integer format: the nearest end. To boolean: x != 0. The same format gives x itself.
template <Machine M> constexpr tensor<M> cast(tensor<M> x, dtype to, place at = place::current()) {
  if (x.valid() && x.type() == to) return x;
  return apply<op::cast>(at, op::cast::constants{.to = to}, x);
}
}  // namespace isotope
