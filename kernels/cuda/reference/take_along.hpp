#pragma once
/// Takes elements of rows by index, and adds to them in ascending order.
#include <limits>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_take_along.hpp>
#include <isotope/op/take_along.hpp>

#include "take_along.h"

namespace isotope::cuda {

template <class P> struct kernel<op::take_along, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &index = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const float outside = l.constants<op::take_along>().zeros ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    const gpu::reference_take_along_arguments g{x.at,   index.at, y.at, n / y.dims[-1], x.dims[-1], y.dims[-1], std::int32_t(x.type),
                                                outside};
    r.add(fatbins::reference_take_along, "reference_take_along", g, per_item(n), {x, index}, {y});
  }
};

template <class P> struct kernel<op::scatter_add, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &updates = l.in[1], &index = l.in[2], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const gpu::reference_scatter_add_arguments g{
        x.at, updates.at, index.at, y.at, n / y.dims[-1], y.dims[-1], updates.dims[-1], std::int32_t(x.type), std::int32_t(updates.type)};
    r.add(fatbins::reference_take_along, "reference_scatter_add", g, per_item(n), {x, updates, index}, {y});
  }
};

}  // namespace isotope::cuda
