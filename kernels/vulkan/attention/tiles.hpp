#pragma once
/// Tiles of the portable attention kernels: attention/tile.glsl mirrors the sizes.
#include <algorithm>
#include <array>
#include <string>

#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/kernels/vulkan/attention/work.hpp>

namespace isotope::vulkan {

/// The work of one workgroup: `queries` rows against `keys` rows, by `invocations`, `across` of them along a row.
struct attention_tiles {
  std::int64_t queries, keys, invocations, across;
  double speed;  // TFLOP/s of an H200 with long heads
  double idle;   // rows that take as long as what every head costs besides its rows

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
  constexpr std::string_view unfit(const attention_work& w) const {
    if (shared_bytes(w.D) > std::int64_t(w.device->shared_bytes)) return "it takes more shared memory than a workgroup has";
    if (invocations > std::int64_t(w.device->invocations)) return "its workgroups have more invocations than the device's";
    return {};
  }
  constexpr attention_cost cost_of(const attention_work& w) const { return {w.seconds(double(w.rows) + idle, speed)}; }

  bool fit(const attention_heads& h, const launch& l) const { return unfit({.D = h.D, .device = l.device}).empty(); }
  constants specialization(const attention_heads& h, const launch& l) const {
    return h.specialization(invocations, l.device->subgroup, h.aligned(4), {queries, keys, across});
  }
};

/// The variants. Those of 64 rows are for long heads: on an H200 they gain 3 to 8 % at 1024 rows and lose up to 7 % at 256, so they are chosen from 512 rows on.
/// Heads of 64 elements take 38 KiB in them and 19 KiB in tiles of 32 rows. The others are for heads of up to 16 rows, for wide ones and for devices with little
/// shared memory, where the larger one is faster; the last ones fit 16 KiB with heads of 480.
inline constexpr std::array<attention_tiles, 8> attention_tile_choices{{
    {64, 64, 256, 16, 17.28, 58.2},
    {32, 32, 128, 16, 16, 16},
    {16, 32, 64, 16, 12.06, 8},
    {16, 16, 64, 16, 11, 8},
    {8, 16, 32, 16, 8, 8},
    {8, 8, 16, 8, 5, 8},
    {4, 8, 8, 8, 3, 8},
    {4, 4, 4, 4, 1.5, 8},
}};
static_assert(std::ranges::all_of(attention_tile_choices, &attention_tiles::valid));

/// The same tiles in one of the three kernels.
template <attention_part Part> struct attention_tile_variant : attention_tiles {
  std::string name(const attention_cost&) const {
    const std::int64_t own = Part == attention_part::keys ? keys : queries, other = Part == attention_part::keys ? queries : keys;
    return std::string(prefix_of(Part)) + std::to_string(own) + " x " + std::to_string(other);
  }
};
template <attention_part Part>
inline constexpr std::array<attention_tile_variant<Part>, std::size(attention_tile_choices)> attention_tile_variants = [] {
  std::array<attention_tile_variant<Part>, std::size(attention_tile_choices)> all{};
  for (std::size_t k = 0; k < all.size(); ++k) static_cast<attention_tiles&>(all[k]) = attention_tile_choices[k];
  return all;
}();

/// Returns the fastest tiles that fit; the smallest where none does.
template <attention_part Part> const attention_tiles& tiles_of(const attention_work& w, kernel_choices* considered = nullptr) {
  const auto c = choose_kernel(attention_tile_variants<Part>, w, considered);
  return c.variant == nullptr ? attention_tile_choices.back() : *c.variant;
}

}  // namespace isotope::vulkan
