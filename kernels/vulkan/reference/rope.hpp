#pragma once
/// Rotary position embedding: the host computes angles and their sines and cosines in f64, or where positions are on the device, the angle of one
/// position in integer parts of a turn.
#include <cmath>

#include <isotope/op/rope_frequency.hpp>
#include <isotope/shaders/reference_rope.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// The addresses and the number of bytes that rope reads besides x.
struct rope_tables {
  std::uint64_t table = 0, positions = 0;
  std::vector<range> reads;

  /// (S, D / 2, 2) f32: cosines and sines of first + s times the frequency of a pair, the sines times the direction; with positions (D / 2) u64.
  rope_tables(const launch& l, recording& r) {
    const auto c = l.constants<op::rope>();
    const std::int64_t S = l.in[0].dims[1], D = l.in[0].dims[3];
    if (l.in.size() > 1) {
      std::vector<std::uint64_t> turns;
      for (std::int64_t d = 0; d < D / 2; ++d) turns.push_back(op::rope_turn(c, d, D));
      table = r.keep(std::span<const std::uint64_t>(turns));
      positions = l.in[1].at;
      reads = {l.in[0], range(table, 4 * D), l.in[1]};
      return;
    }
    std::vector<float> rotations;
    rotations.reserve(std::size_t(S * D));
    for (std::int64_t s = 0; s < S; ++s)
      for (std::int64_t d = 0; d < D / 2; ++d) {
        const double t = double(c.first + s) * op::rope_frequency(c, d, D);
        rotations.push_back(float(std::cos(t)));
        rotations.push_back(float(double(c.direction) * std::sin(t)));
      }
    table = r.keep(std::span<const float>(rotations));
    reads = {l.in[0], range(table, 4 * S * D)};
  }
};

}  // namespace reference

template <class P> struct kernel<op::rope, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // both elements of a pair are read before either is written
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t S = x.dims[1], H = x.dims[2], D = x.dims[3], count = x.dims.count() / 2;
    if (count == 0) return;
    const auto c = l.constants<op::rope>();
    reference::rope_tables t(l, r);
    const struct {
      std::uint64_t x, y, table, positions;
      std::uint32_t count, S, H, pairs;
      float direction;
      std::uint32_t rotated;
    } push{x.at, y.at, t.table, t.positions, word(count), word(S), word(H), word(D / 2), float(c.direction), word(c.rotated(H))};
    r.add(shaders::reference_rope, reference::plain(l).add(x.type).add(y.type).add(l.in.size() > 1), push, reference::per_item(count),
          std::move(t.reads), {y});
  }
};

}  // namespace isotope::vulkan
