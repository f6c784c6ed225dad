#pragma once
/// Rotary position embedding: the host computes angles and their sines and cosines.
#include <cmath>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_rope.hpp>
#include <isotope/op/rope_frequency.hpp>

#include "rope.h"

namespace isotope::cuda {
namespace reference {

/// Returns (S, D / 2, 2): cosines and sines of first + s times the frequency of a pair, the sines times the direction.
inline std::vector<double> rotations(const op::rope::constants& c, std::int64_t S, std::int64_t D) {
  std::vector<double> table;
  table.reserve(std::size_t(S * D));
  for (std::int64_t s = 0; s < S; ++s)
    for (std::int64_t d = 0; d < D / 2; ++d) {
      const double t = double(c.first + s) * op::rope_frequency(c, d, D);
      table.push_back(std::cos(t));
      table.push_back(double(c.direction) * std::sin(t));
    }
  return table;
}

}  // namespace reference

template <class P> struct kernel<op::rope, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // both elements of a pair are read before either is written
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3], count = x.dims.count() / 2;
    if (count == 0) return;
    const auto c = l.constants<op::rope>();
    const bool given = l.in.size() > 1;
    std::vector<double> values;
    if (given)
      for (std::int64_t d = 0; d < D / 2; ++d) values.push_back(op::rope_frequency(c, d, D));
    else values = reference::rotations(c, S, D);
    const std::uint64_t table = r.keep(std::span<const double>(values)), positions = given ? l.in[1].at : 0;
    const gpu::reference_rope_arguments g{
        x.at, y.at, positions, table, count, S, H, D / 2, c.rotated(H), double(c.direction), std::int32_t(x.type), std::int32_t(y.type)};
    std::vector<range> reads{x, range(table, std::int64_t(8 * values.size()))};
    if (given) reads.push_back(l.in[1]);
    r.add(fatbins::reference_rope, "reference_rope", g, per_item(count), std::move(reads), {y});
  }
};

}  // namespace isotope::cuda
