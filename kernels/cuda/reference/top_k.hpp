#pragma once
/// The k largest elements of rows and their indices.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_top_k.hpp>
#include <isotope/op/top_k.hpp>

#include "top_k.h"

namespace isotope::cuda {

template <class P> struct kernel<op::top_k, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &values = l.out[0], &places = l.out[1];
    const std::int64_t n = x.dims[-1], rows = n == 0 ? 0 : x.dims.count() / n;
    if (rows == 0) return;
    const gpu::reference_top_k_arguments g{
        x.at, values.at, places.at, rows, n, l.constants<op::top_k>().k, std::int32_t(x.type), std::int32_t(values.type)};
    r.add(fatbins::reference_top_k, "reference_top_k", g, per_item(rows), {x}, {values, places});
  }
};

}  // namespace isotope::cuda
