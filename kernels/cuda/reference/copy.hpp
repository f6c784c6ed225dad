#pragma once
/// Moves bytes unchanged: copy, concat, and pad, the gradient of narrow.
#include <isotope/fatbins/reference_move.hpp>
#include <isotope/op/concat.hpp>
#include <isotope/op/copy.hpp>
#include <isotope/op/view.hpp>

#include "items.hpp"
#include "move.h"

namespace isotope::cuda {
namespace reference {

/// y[to + i] = x[i] for every index i of x; `to` counts elements of y.
inline void move(recording& r, const view& x, const view& y, std::int64_t to) {
  const std::int64_t n = x.dims.count();
  if (n == 0) return;
  view part = y;
  part.at += std::uint64_t(to * size_of(y.type));
  part.bytes -= to * size_of(y.type);
  gpu::move_arguments a{};
  a.x = x.at;
  a.y = part.at;
  a.count = n;
  a.from = axes_of(x);
  a.into = axes_of(x.dims, y.strides);
  a.bytes = std::int32_t(size_of(x.type));
  a.padded_axis = -1;
  r.add(fatbins::reference_move, "reference_move", a, per_item(n), {x}, {part});
}

}  // namespace reference

template <class P> struct kernel<op::copy, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::move(r, l.in[0], l.out[0], 0); }
};

template <class P> struct kernel<op::concat, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const auto axis = std::size_t(l.constants<op::concat>().axis);
    std::int64_t first = 0;
    for (const view& x : l.in) {
      reference::move(r, x, l.out[0], first * l.out[0].strides[axis]);
      first += x.dims[int(axis)];
    }
  }
};

template <class P> struct kernel<op::pad, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    if (n == 0) return;
    const auto [axis, first, size] = l.constants<op::pad>();
    gpu::move_arguments a{};
    a.x = x.at;
    a.y = y.at;
    a.count = n;
    a.from = axes_of(x);
    a.into = axes_of(y);
    a.first = first;
    a.length = x.dims[int(axis)];
    a.bytes = std::int32_t(size_of(x.type));
    a.padded_axis = std::int32_t(axis);
    r.add(fatbins::reference_move, "reference_move", a, per_item(n), {x}, {y});
  }
};

}  // namespace isotope::cuda
