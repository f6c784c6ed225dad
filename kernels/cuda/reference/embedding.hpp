#pragma once
/// Looks up rows of a table by id; the gradient adds rows in ascending order.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_embedding.hpp>
#include <isotope/op/embedding.hpp>

#include "embedding.h"

namespace isotope::cuda {

template <class P> struct kernel<op::embedding, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &table = l.in[0], &ids = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const gpu::reference_embedding_arguments g{
        table.at, ids.at, y.at, ids.dims.count(), table.dims[0], table.dims[1], std::int32_t(table.type), std::int32_t(y.type)};
    r.add(fatbins::reference_embedding, "reference_embedding", g, per_item(n), {table, ids}, {y});
  }
};

template <class P> struct kernel<op::embedding_grad, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &dy = l.in[1], &ids = l.in[2], &into = l.out[0];
    const auto rows = ids.dims.count(), C = into.dims[1];
    if (rows * C == 0) return;
    const gpu::reference_embedding_grad_arguments g{
        into.at, dy.at, ids.at, rows, into.dims[0], C, std::int32_t(into.type), std::int32_t(dy.type)};
    r.add(fatbins::reference_embedding, "reference_embedding_grad", g, per_item(rows * C), {into, dy, ids}, {into});
  }
};

}  // namespace isotope::cuda
