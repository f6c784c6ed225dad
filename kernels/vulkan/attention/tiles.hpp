#pragma once
/// Tiles of the portable attention kernels: attention/tile.glsl mirrors the sizes.
#include <algorithm>

#include <isotope/kernels/vulkan/attention/heads.hpp>

namespace isotope::vulkan {

/// The work of one workgroup: `queries` rows against `keys` rows, by `invocations`, `across` of them along a row.
struct attention_tiles {
  std::int64_t queries, keys, invocations, across;
  std::int64_t least_rows = 0;  // heads with at least so many rows use these tiles

  constexpr bool valid() const {
    const auto down = invocations / across;
    return across % 4 == 0 && queries % (4 * down) == 0 && keys % across == 0 && keys % down == 0;
  }
  /// Returns the size of two sets of rows of D elements, or of the weights of a tile if these are longer, each with 16 bytes of padding, and the
  /// forward's maxima.
  constexpr std::int64_t shared_bytes(std::int64_t D) const {
    const std::int64_t vectors = ((D + 3) / 4 + across - 1) / across * across;
    const auto row = [&](std::int64_t weights) { return 16 * (std::max(vectors, weights / 4) + 1); };
    return queries * row(keys) + keys * row(queries) + 4 * queries * across;
  }
  bool fit(const attention_heads& h, const launch& l) const {
    return shared_bytes(h.D) <= std::int64_t(l.device->shared_bytes) && invocations <= std::int64_t(l.device->invocations);
  }
  constants specialization(const attention_heads& h, const launch& l) const {
    return h.specialization(invocations, l.device->subgroup, h.aligned(4), {queries, keys, across});
  }
};

/// The first tiles that fit are taken. Those of 64 rows are for long heads: on an H200 they gain 3 to 8 % at 1024 rows and lose up to 7 % at 256.
/// Heads of 64 elements take 38 KiB in them and 19 KiB in tiles of 32 rows. The others are for short heads, for wide ones and for devices with little
/// shared memory; the last ones fit 16 KiB with heads of 480.
inline constexpr attention_tiles attention_tile_choices[] = {{64, 64, 256, 16, 512}, {32, 32, 128, 16, 17}, {16, 32, 64, 16},
                                                             {16, 16, 64, 16},       {8, 16, 32, 16},       {8, 8, 16, 8},
                                                             {4, 8, 8, 8},           {4, 4, 4, 4}};
static_assert(std::all_of(std::begin(attention_tile_choices), std::end(attention_tile_choices), [](const auto& t) { return t.valid(); }));

/// Returns the tiles for workgroups that own some of a head's `rows`, queries or keys.
inline attention_tiles tiles_of(const attention_heads& h, const launch& l, std::int64_t rows) {
  for (const auto& t : attention_tile_choices)
    if (rows >= t.least_rows && t.fit(h, l)) return t;
  return *std::rbegin(attention_tile_choices);
}

}  // namespace isotope::vulkan
