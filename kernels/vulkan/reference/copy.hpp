#pragma once
/// Moves bytes unchanged: copy, concat, and pad, the gradient of narrow.
#include <isotope/op/concat.hpp>
#include <isotope/op/copy.hpp>
#include <isotope/op/view.hpp>
#include <isotope/shaders/reference_move.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

struct move_push {
  std::uint64_t x, y;
  std::uint32_t count;
  std::array<std::uint32_t, max_rank> dims, x_strides, y_strides;
  std::uint32_t axis = 0, first = 0, length = 0;
};
/// y[to + i] = x[i] for every index i of x; `to` counts elements of y.
inline void move(const launch& l, recording& r, const view& x, const view& y, std::int64_t to) {
  if (x.dims.count() == 0) return;
  view part = y;
  part.at += std::uint64_t(to * size_of(y.type));
  part.bytes -= to * size_of(y.type);
  const axes from(x), into(x.dims, y.strides);
  const move_push push{x.at, part.at, word(x.dims.count()), from.dims, from.strides, into.strides};
  r.add(shaders::reference_move, plain(l).add(size_of(x.type)).add(false), push, per_item(x.dims.count()), {x}, {part});
}

}  // namespace reference

template <class P> struct kernel<op::copy, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::move(l, r, l.in[0], l.out[0], 0); }
};

template <class P> struct kernel<op::concat, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const auto axis = std::size_t(l.constants<op::concat>().axis);
    std::int64_t first = 0;
    for (const view& x : l.in) {
      reference::move(l, r, x, l.out[0], first * l.out[0].strides[axis]);
      first += x.dims[int(axis)];
    }
  }
};

template <class P> struct kernel<op::pad, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const reference::axes from(x), into(y);
    const auto [axis, first, size] = l.constants<op::pad>();
    const reference::move_push push{x.at,       y.at,        word(y.dims.count()),   into.dims, from.strides, into.strides,
                                    word(axis), word(first), word(x.dims[int(axis)])};
    r.add(shaders::reference_move, reference::plain(l).add(size_of(x.type)).add(true), push, reference::per_item(y.dims.count()), {x}, {y});
  }
};

}  // namespace isotope::vulkan
