#pragma once
/// Dense tensors and flat regions, several elements per thread.
#include <isotope/kernels/cuda/portable/update.h>
#include <isotope/fatbins/flat.hpp>

#include "rows.hpp"

namespace isotope::cuda::portable {

/// y[i] = x[i] or, if `add`, y[i] += x[i]; both are dense and in floating-point formats.
inline void record_flat(recording& r, const view& x, const view& y, bool add) {
  const std::int64_t count = y.dims.count();
  if (count == 0) return;
  const gpu::flat_operands a{x.at, y.at, count, std::int32_t(x.type), std::int32_t(y.type), add, all_aligned(x, y)};
  std::vector<range> reads{x};
  if (add) reads.push_back(y);
  r.add(fatbins::flat, "flat_move", a, per_item(divide_up(count, 8)), std::move(reads), {y});
}

}  // namespace isotope::cuda::portable
