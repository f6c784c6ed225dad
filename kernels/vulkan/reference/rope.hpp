#pragma once
/// Rotary position embedding: the host computes angles and their sines and cosines in f64.
#include <cmath>

#include <isotope/op/rope.hpp>
#include <isotope/shaders/reference_rope.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// (S, D / 2, 2): cosines and sines of (first + s) base^(-2 d / D), the sines times the direction.
inline std::vector<float> rotations(const attributes& a, std::int64_t S, std::int64_t D) {
  std::vector<float> table;
  table.reserve(std::size_t(S * D));
  for (std::int64_t s = 0; s < S; ++s)
    for (std::int64_t d = 0; d < D / 2; ++d) {
      const double t = double(a.i[0] + s) * std::pow(a.f[0], -2.0 * double(d) / double(D));
      table.push_back(float(std::cos(t)));
      table.push_back(float(double(a.i[1]) * std::sin(t)));
    }
  return table;
}

}  // namespace reference

template <class P> struct kernel<op::rope, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // both elements of a pair are read before either is written
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3], count = x.dims.count() / 2;
    if (count == 0) return;
    const std::vector<float> rotations = reference::rotations(*l.attr, S, D);
    const std::uint64_t table = r.keep(std::span<const float>(rotations));
    const struct {
      std::uint64_t x, y, table;
      std::uint32_t count, S, H, pairs;
    } push{x.at, y.at, table, word(count), word(S), word(H), word(D / 2)};
    r.add(shaders::reference_rope, reference::plain(l).add(x.type).add(y.type), push, reference::per_item(count),
          {x, range(table, 4 * S * D)}, {y});
  }
};

}  // namespace isotope::vulkan
