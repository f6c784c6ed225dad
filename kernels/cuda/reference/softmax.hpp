#pragma once
/// Softmax and its logarithm along one axis, and their gradients.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_softmax.hpp>
#include <isotope/op/softmax.hpp>

#include "softmax.h"

namespace isotope::cuda {
namespace reference {

/// A dense tensor seen as (rows / inner, n, inner) around an axis.
struct axis_rows {
  std::int64_t rows = 0, n = 0, inner = 1;
  axis_rows(const shape& s, std::int64_t axis) : n(s[int(axis)]) {
    for (int k = int(axis) + 1; k < s.rank; ++k) inner *= s[k];
    rows = n == 0 ? 0 : s.count() / n;
  }
};
inline void softmax(const launch& l, recording& r, bool log) {
  const view &x = l.in[0], &y = l.out[0];
  const axis_rows a(x.dims, l.constants<op::softmax_shape>().axis);
  if (a.rows == 0) return;
  const gpu::reference_softmax_arguments g{x.at, y.at, a.rows, a.n, a.inner, std::int32_t(x.type), std::int32_t(y.type), log};
  r.add(fatbins::reference_softmax, "reference_softmax", g, per_item(a.rows), {x}, {y});
}
inline void softmax_grad(const launch& l, recording& r, bool log) {
  const view &y = l.in[0], &dy = l.in[1], &dx = l.out[0];
  const axis_rows a(y.dims, l.constants<op::softmax_shape>().axis);
  if (a.rows == 0) return;
  const gpu::reference_softmax_grad_arguments g{
      y.at, dy.at, dx.at, a.rows, a.n, a.inner, std::int32_t(y.type), std::int32_t(dy.type), std::int32_t(dx.type), log};
  r.add(fatbins::reference_softmax, "reference_softmax_grad", g, per_item(a.rows), {y, dy}, {dx});
}

}  // namespace reference

template <class P> struct kernel<op::softmax, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) { reference::softmax(l, r, false); }
};
template <class P> struct kernel<op::log_softmax, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) { reference::softmax(l, r, true); }
};
template <class P> struct kernel<op::softmax_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b11;
  static void record(const launch& l, recording& r) { reference::softmax_grad(l, r, false); }
};
template <class P> struct kernel<op::log_softmax_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b11;
  static void record(const launch& l, recording& r) { reference::softmax_grad(l, r, true); }
};

}  // namespace isotope::cuda
