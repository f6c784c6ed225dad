#pragma once
/// The operands of cached attention as its shaders take them, and how workgroups share the keys of a query; mirrors attention/cached.glsl.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::vulkan {

struct attention_cached_push {
  std::uint64_t q = 0, keys = 0, values = 0, sequence = 0, position = 0, y = 0, sums = 0, totals = 0, new_key = 0, new_value = 0;
  std::uint32_t q_stride = 0, y_stride = 0, N = 0, B = 0, H = 0, G = 0, T = 0, window = 0;
  float scale = 0;
};

/// The parts of a cache of T keys, of at least `least` keys each. They depend on nothing else, so the bits of a row do not depend on the other rows.
struct cached_parts {
  static constexpr std::int64_t most = 64, planned = 256;  // parts; the least keys of a part that scratch memory is planned for
  std::int64_t count, keys;                                // keys of each

  constexpr cached_parts(std::int64_t T, std::int64_t least)
      : count(std::min<std::int64_t>(most, (T + least - 1) / least)), keys(count == 0 ? 0 : (T + count - 1) / count) {}
  /// Bytes of the sums and totals of all parts of `heads` rows of D elements.
  constexpr std::int64_t scratch(std::int64_t heads, std::int64_t D) const { return count <= 1 ? 0 : 4 * heads * count * (D + 2); }
};

/// A cache of T keys, and the bytes of scratch memory for `heads` heads of all rows with D elements each.
struct cached_problem {
  std::int64_t T, heads, D, scratch;
};
/// How many keys a part has at least, as a variant of the kernel.
struct cached_variant {
  std::int64_t least;  // 0: one workgroup reads all keys

  constexpr cached_parts parts(std::int64_t T) const { return {T, least == 0 ? std::max<std::int64_t>(T, 1) : least}; }
  constexpr std::string_view unfit(const cached_problem& p) const {
    const cached_parts of = parts(p.T);
    if (least != 0 && of.count <= 1) return "the cache has no more keys than a part";
    if (of.scratch(p.heads, p.D) > p.scratch) return "its parts need more scratch memory than was planned";
    return {};
  }
  struct cost {
    double seconds = 0;
  };
  /// A workgroup reads a key and its value in about 3 ns. Measured was that the dispatch that adds two parts takes as long as 512 keys; that each doubling of the
  /// parts takes as long again, and each part eight keys, is an assumption. How many rows there are does not count.
  cost cost_of(const cached_problem& p) const {
    constexpr double key = 3e-9, merge = 512, part = 8;
    const cached_parts of = parts(p.T);
    return {key * (double(of.keys) + (of.count > 1 ? merge * std::log2(double(of.count)) + part * double(of.count - 2) : 0))};
  }
  std::string name(const cost&) const {
    return least == 0 ? "cached attention: whole" : "cached attention: parts of " + std::to_string(least) + " keys";
  }
};
inline constexpr std::array<cached_variant, 6> cached_variants{
    {{1024}, {2048}, {4096}, {0}, {512}, {256}}};  // of equally fast ones the first is taken

}  // namespace isotope::vulkan
