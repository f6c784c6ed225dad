#pragma once
/// What layer_norm and rms_norm share.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_norm.hpp>

#include "norm.h"

namespace isotope::cuda::reference {

/// `bias` and `means` are set if a mean is subtracted, otherwise null.
struct norm_operands {
  const view &x, &weight;
  const view* bias = nullptr;
  const view& y;
  const view* means = nullptr;
  const view& rstds;
  double epsilon;
};
inline void norm(recording& r, const norm_operands& o) {
  const auto rows = o.rstds.dims.count();
  if (rows == 0) return;
  gpu::reference_norm_arguments g{};
  g.x = o.x.at;
  g.weight = o.weight.at;
  g.y = o.y.at;
  g.rstds = o.rstds.at;
  g.rows = rows;
  g.C = o.x.dims[-1];
  g.epsilon = o.epsilon;
  g.x_type = std::int32_t(o.x.type);
  g.weight_type = std::int32_t(o.weight.type);
  g.y_type = std::int32_t(o.y.type);
  std::vector<range> reads{o.x, o.weight}, writes{o.y, o.rstds};
  if (o.bias != nullptr) {
    g.centered = 1;
    g.bias = o.bias->at;
    g.bias_type = std::int32_t(o.bias->type);
    g.means = o.means->at;
    reads.push_back(*o.bias);
    writes.push_back(*o.means);
  }
  r.add(fatbins::reference_norm, "reference_norm", g, per_item(rows), std::move(reads), std::move(writes));
}

struct norm_grad_operands {
  const view &x, &weight;
  const view* means = nullptr;
  const view &rstds, &dy, &dx, &dweight;
  const view* dbias = nullptr;
  const view* addend = nullptr;
};
inline void norm_grad(recording& r, const norm_grad_operands& o) {
  const auto rows = o.rstds.dims.count(), C = o.x.dims[-1];
  if (C == 0) return;
  gpu::reference_norm_grad_arguments g{};
  g.x = o.x.at;
  g.dy = o.dy.at;
  g.weight = o.weight.at;
  g.rstds = o.rstds.at;
  g.dx = o.dx.at;
  g.dweight = o.dweight.at;
  g.rows = rows;
  g.C = C;
  g.x_type = std::int32_t(o.x.type);
  g.dy_type = std::int32_t(o.dy.type);
  g.weight_type = std::int32_t(o.weight.type);
  g.dx_type = std::int32_t(o.dx.type);
  g.dweight_type = std::int32_t(o.dweight.type);
  std::vector<range> reads{o.x, o.dy, o.rstds}, sums{o.dweight};
  if (o.means != nullptr) {
    g.centered = 1;
    g.means = o.means->at;
    g.dbias = o.dbias->at;
    g.dbias_type = std::int32_t(o.dbias->type);
    reads.push_back(*o.means);
    sums.push_back(*o.dbias);
  }
  // The sums over rows come first, because dx may overwrite what they read.
  r.add(fatbins::reference_norm, "reference_norm_weight_grad", g, per_item(C), reads, std::move(sums));
  if (rows == 0) return;
  reads.push_back(o.weight);
  if (o.addend != nullptr) {
    g.addend = o.addend->at;
    reads.push_back(*o.addend);
  }
  r.add(fatbins::reference_norm, "reference_norm_grad", g, per_item(rows), std::move(reads), {o.dx});
}

}  // namespace isotope::cuda::reference
