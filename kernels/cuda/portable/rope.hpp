#pragma once
/// Rotary position embedding, four pairs per thread.
#include <isotope/kernels/cuda/portable/rope.h>
#include <isotope/fatbins/rope.hpp>
#include <isotope/kernels/cuda/reference/rope.hpp>
#include <isotope/op/rope.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::rope, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;  // both halves are read before either is written
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3];
    if (x.dims.count() == 0) return;
    if (x.type != y.type) return portable::fall_through<op::rope, P>(l, r, "rope: two formats");
    const std::vector<double> exact = reference::rotations(l.constants<op::rope>(), S, D);
    const std::vector<float> rotations(exact.begin(), exact.end());
    const std::uint64_t table = r.keep(std::span<const float>(rotations));
    const bool wide = D % 8 == 0 && portable::all_aligned(x, y);
    const std::int64_t each = wide ? 4 : 1, count = x.dims.count() / (2 * each);
    const gpu::rope_operands a{x.at, y.at, table, count, S, H, std::int32_t(D / 2 / each), std::int32_t(x.type), wide};
    r.add(fatbins::rope, "rope", a, per_item(count), {x, range(table, 4 * S * D)}, {y});
  }
};

}  // namespace isotope::cuda
