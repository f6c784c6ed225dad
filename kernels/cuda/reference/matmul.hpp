#pragma once
/// Matrix product by the definition, with a fused epilogue.
#include <isotope/fatbins/reference_matmul.hpp>
#include <isotope/kernels/cuda/body/body.hpp>
#include <isotope/op/matmul.hpp>

#include "matmul.h"

namespace isotope::cuda {
namespace reference {

/// Returns the strides of v along `rank` axes, aligned at the last one: 0 along axes that broadcast.
inline extents repeated(const view& v, int rank) {
  extents r{};
  for (int k = 0; k < v.dims.rank; ++k)
    if (v.dims[k] != 1) r[std::size_t(k + rank - v.dims.rank)] = v.strides[std::size_t(k)];
  return r;
}

}  // namespace reference

template <class P> struct kernel<op::matmul, P, kernels::reference> {
  static constexpr bool epilogue = true;
  static constexpr std::int64_t chain(std::int64_t) { return 1; }  // longest serial sum in roundings of f32: the sum is in f64
  static void record(const launch& l, recording& r) {
    const view &a = l.in[0], &b = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const int rank = y.dims.rank;
    extents a_rows = reference::repeated(a, rank), b_cols = reference::repeated(b, rank);  // (..., M, 0), (..., 0, N)
    a_rows[std::size_t(rank - 1)] = b_cols[std::size_t(rank - 2)] = 0;
    const auto k = l.constants<op::matmul>();
    const view* c = k.operands == 3 && k.beta != 0 ? &l.in[2] : nullptr;
    const fused_body body(l, int(k.operands));

    gpu::reference_matmul_arguments g{};
    g.a = a.at;
    g.b = b.at;
    g.y = y.at;
    g.a_type = std::int32_t(a.type);
    g.b_type = std::int32_t(b.type);
    g.y_type = std::int32_t(y.type);
    g.product_type = std::int32_t(k.format.type());
    g.add = std::int32_t(l.accumulate & 1);
    g.count = n;
    g.K = a.dims[-1];
    g.a_step = a.strides[std::size_t(a.dims.rank - 1)];
    g.b_step = b.strides[std::size_t(b.dims.rank - 2)];
    g.alpha = k.alpha;
    g.beta = k.beta;
    g.a_at = axes_of(y.dims, a_rows);
    g.b_at = axes_of(y.dims, b_cols);
    std::vector<range> reads{a, b}, writes;
    if (c != nullptr) {
      g.plus_c = 1;
      g.c = c->at;
      g.c_type = std::int32_t(c->type);
      g.c_at = axes_of(y.dims, c->strides);
      reads.push_back(*c);
    }
    if (body.empty()) {
      writes.push_back(y);
      if (g.add != 0) reads.push_back(y);
    } else {
      g.body = body.arguments();
      body.add_ranges(reads, writes);
    }
    r.add(fatbins::reference_matmul, "reference_matmul", g, per_item(n), std::move(reads), std::move(writes));
  }
};

}  // namespace isotope::cuda
