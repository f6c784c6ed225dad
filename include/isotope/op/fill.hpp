#pragma once
#include "view.hpp"

namespace isotope {
namespace op {
/// An op without operands.
struct fill {
  struct constants {
    shape dims{};            // of the result: its sizes, its rank, and beside the rank the slots of scalar dimensions in five bits each
    format_number format{};  // of the result
    double x = 0;            // value of every element
    double per_rank = 0;     // what x grows by with each tensor index of a rank
    static constexpr constants of(const attributes& a) {
      constants c{.format = format_number(a.i[7]), .x = a.scalar(), .per_rank = a.f[1]};
      const std::int64_t rank = a.i[6] < 0 ? -1 : a.i[6] & 255;
      c.dims.too_deep = rank < 0 || rank > max_rank;
      for (int k = 0; k < rank && k < max_rank; ++k) {
        const int slot = int((a.i[6] >> (8 + 5 * k)) & 31) - 1;
        c.dims.push(slot < 0 ? dim(a.i[std::size_t(k)]) : dim(scalar_dim{a.i[std::size_t(k)], slot}));
      }
      return c;
    }
    constexpr operator attributes() const {
      attributes a = attributes::of_scalar(x);
      a.i[6] = dims.too_deep ? max_rank + 1 : dims.rank;
      for (int k = 0; k < dims.rank; ++k) {
        a.i[std::size_t(k)] = dims[k];
        a.i[6] |= std::int64_t(dims.slots[std::size_t(k)] + 1) << (8 + 5 * k);
      }
      a.i[7] = format.number;
      a.f[1] = per_rank;
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
  static constexpr void localise(attributes& a, const mesh_position& at) {
    auto c = constants::of(a);
    c.x += c.per_rank * at.tensor;
    a = c;
  }
};
}  // namespace op

/// y[i] = x for a tensor of this shape and format, which the device writes.
template <Machine M> constexpr tensor<M> fill(M& machine, const shape& s, dtype t, double x = 0, place at = place::current()) {
  return {&machine, apply_op<op::fill>(&machine, {}, op::fill::constants{.dims = s, .format = t, .x = x}, at).out[0]};
}
}  // namespace isotope
