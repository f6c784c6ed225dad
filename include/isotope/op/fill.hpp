#pragma once
#include "view.hpp"

namespace isotope {
namespace op {
/// An op without operands.
struct fill {
  struct constants {
    shape dims{};            // of the result; no scalar dimensions
    format_number format{};  // of the result
    double x = 0;            // value of every element
    static constexpr constants of(const attributes& a) {
      constants c{.format = format_number(a.i[7]), .x = a.scalar()};
      c.dims.too_deep = a.i[6] < 0 || a.i[6] > max_rank;
      for (int k = 0; k < a.i[6] && k < max_rank; ++k) c.dims.push(a.i[std::size_t(k)]);
      return c;
    }
    constexpr operator attributes() const {
      attributes a = attributes::of_scalar(x);
      for (int k = 0; k < dims.rank; ++k) a.i[std::size_t(k)] = dims[k];
      a.i[6] = dims.too_deep ? max_rank + 1 : dims.rank;
      a.i[7] = format.number;
      return a;
    }
  };
  static constexpr std::string_view name = "fill";
  static constexpr bool constant = true;
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr void infer(shape_rule& r) {
    const auto c = constants::of(r.attr);
    r.yield(c.dims, r.format(c.format));
  }
};
}  // namespace op

/// y[i] = x for a tensor of this shape and format, which the device writes.
template <Machine M> constexpr tensor<M> fill(M& machine, const shape& s, dtype t, double x = 0, place at = place::current()) {
  return {&machine, apply_op<op::fill>(&machine, {}, op::fill::constants{.dims = s, .format = t, .x = x}, at).out[0]};
}
}  // namespace isotope
