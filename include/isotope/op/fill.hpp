#pragma once
#include "view.hpp"

namespace isotope {
namespace op {
/// No operands. attributes: i[0..5] dimensions, i[6] rank, i[7] dtype; f[0] the value.
struct fill {
  static constexpr std::string_view name = "fill";
  static constexpr void infer(shape_rule& r) {
    shape s;
    s.too_deep = r.attr.i[6] < 0 || r.attr.i[6] > max_rank;
    for (int k = 0; k < r.attr.i[6] && k < max_rank; ++k) s.push(r.attr.i[std::size_t(k)]);
    r.yield(s, r.format(r.attr.i[7]));
  }
};
}  // namespace op

/// y[i] = x, written on the device.
template <Machine M> constexpr tensor<M> fill(M& machine, const shape& s, dtype t, double x = 0, place at = place::current()) {
  attributes a;
  for (int k = 0; k < s.rank; ++k) a.i[std::size_t(k)] = s[k];
  a.i[6] = s.too_deep ? max_rank + 1 : s.rank;
  a.i[7] = std::int64_t(t);
  a.f[0] = x;
  return {&machine, apply_op<op::fill>(&machine, {}, a, at).out[0]};
}
}  // namespace isotope
