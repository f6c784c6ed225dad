#pragma once
/// Rotary position embedding, four pairs per thread.
#include <isotope/kernels/cuda/portable/rope.h>
#include <isotope/fatbins/rope.hpp>
#include <isotope/kernels/cuda/reference/rope.hpp>
#include <isotope/op/rope_frequency.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::rope, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;  // both halves are read before either is written
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3];
    if (x.dims.count() == 0) return;
    if (x.type != y.type) return portable::fall_through<op::rope, P>(l, r, "rope: two formats");
    const auto c = l.constants<op::rope>();
    const bool given = l.in.size() > 1, wide = D % 8 == 0 && portable::all_aligned(x, y);
    std::vector<range> reads{x};
    std::uint64_t table = 0, positions = 0;
    if (given) {
      std::vector<std::uint64_t> turns;
      for (std::int64_t d = 0; d < D / 2; ++d) turns.push_back(op::rope_turn(c, d, D));
      table = r.keep(std::span<const std::uint64_t>(turns));
      positions = l.in[1].at;
      reads.push_back(range(table, 4 * D));
      reads.push_back(l.in[1]);
    } else {
      const std::vector<double> exact = reference::rotations(c, S, D);
      const std::vector<float> rotations(exact.begin(), exact.end());
      table = r.keep(std::span<const float>(rotations));
      reads.push_back(range(table, 4 * S * D));
    }
    const std::int64_t each = wide ? 4 : 1, count = x.dims.count() / (2 * each);
    const gpu::rope_operands a{
        x.at, y.at, positions, table, count, S, H, c.rotated(H), float(c.direction), std::int32_t(D / 2 / each), std::int32_t(x.type),
        wide};
    r.add(fatbins::rope, "rope", a, per_item(count), std::move(reads), {y});
  }
};

}  // namespace isotope::cuda
