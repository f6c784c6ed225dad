#pragma once
/// Split-K: where tiles are too few to fill the device, several blocks share a tile, each with a part of K; a second launch adds the parts.
#include <algorithm>
#include <isotope/core/target.hpp>

namespace isotope::cuda {

class matmul_split {
 public:
  static constexpr std::int64_t most = 16;          // parts: with more, reading them costs more than an idle device loses
  static constexpr std::int64_t least_depth = 256;  // K of a part at least: sixteen slabs of the f32 tile, four of the tensor-core tile
  static constexpr std::int64_t room = 1 << 24;     // f32 partial sums, 64 MiB: enough for 4 parts of 2048 x 2048

  /// Returns how many parts of K scratch has room for.
  static constexpr std::int64_t limit(std::int64_t elements, std::int64_t K) {
    if (elements == 0) return 1;
    return std::clamp<std::int64_t>(std::min(room / elements, K / least_depth), 1, most);
  }
  /// Returns the bytes of partial sums for any number of parts. Where sizes are known late, a smaller product may take more parts than the
  /// largest.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t elements = s.out[0].count(), K = s.in[0][-1];
    const bool late = s.in[0].has_scalar() || s.in[1].has_scalar();
    if (late) return K < 2 * least_depth ? 0 : 4 * std::min(room, elements * std::min(most, K / least_depth));
    const std::int64_t parts = limit(elements, K);
    return parts == 1 ? 0 : 4 * elements * parts;
  }

  /// A device's speed for one kind of tile: `filling` blocks keep one of its `multiprocessors` busy, and fewer take as long; `rate` is how
  /// many flops the fastest tile does in the time of one byte of memory traffic, `efficiency` the fraction of that speed that this tile
  /// reaches, `speed` the flops a second of the fastest tile on one multiprocessor. `together` blocks start and end at the same time on a
  /// multiprocessor, and fewer take as long.
  struct machine {
    std::int64_t multiprocessors = 1;
    double filling = 1, rate = 10, efficiency = 1, speed = 3e11;
    std::int64_t together = 1;
  };
  struct choice {
    std::int64_t parts = 1, depth = 0;  // depth: K of a part, a multiple of `slab`
    double seconds = 0;                 // predicted
  };
  /// Returns the cheapest split of `tiles` tiles of `area` elements. `wanted`: so many parts if they fit; 0: by cost.
  static constexpr choice choose(std::int64_t tiles, std::int64_t area, std::int64_t elements, std::int64_t K, std::int64_t slab, machine d,
                                 std::int64_t wanted = 0) {
    const std::int64_t top = limit(elements, K);
    choice best;
    for (std::int64_t s = 1; s <= top; ++s) {
      if (wanted != 0 && s != std::min(wanted, top)) continue;
      const std::int64_t depth = std::max<std::int64_t>(1, (K + s * slab - 1) / (s * slab)) * slab;
      if (s > 1 && (s - 1) * depth >= K) continue;  // the last part would be empty
      const std::int64_t wave = d.multiprocessors * d.together, of_unit = (tiles * s + wave - 1) / wave * d.together;
      const double work =
          std::max(double(of_unit), d.filling) * 2 * double(area) * double(depth) * double(d.multiprocessors) / d.efficiency;
      const double reduction = s == 1 ? 0 : (8 * double(s) * double(elements) + bytes_of_unit * double(d.multiprocessors)) * d.rate;
      const double seconds = (work + reduction) / (d.speed * double(d.multiprocessors));
      if (best.depth == 0 || seconds < best.seconds) best = {s, depth, seconds};
    }
    if (best.depth == 0) return choose(tiles, area, elements, K, slab, d, 1);
    return best;
  }

 private:
  static constexpr double bytes_of_unit = 1.5e5;  // bytes that memory moves for one unit in the 5 us that one more launch takes
};

}  // namespace isotope::cuda
