#pragma once
/// The operands of cached attention as its shaders take them, and how workgroups share the keys of a query; mirrors attention/cached.glsl.
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::vulkan {

struct attention_cached_push {
  std::uint64_t q = 0, keys = 0, values = 0, sequence = 0, position = 0, y = 0, sums = 0, totals = 0, new_key = 0, new_value = 0;
  std::uint32_t q_stride = 0, y_stride = 0, N = 0, B = 0, H = 0, G = 0, T = 0, window = 0;
  float scale = 0;
};

/// The parts of a cache of T keys. They depend on nothing else, so the bits of a row do not depend on the other rows.
struct cached_parts {
  static constexpr std::int64_t least = 1024;  // keys: one workgroup reads them in the time that the second dispatch takes
  std::int64_t count, keys;                    // keys of each

  constexpr explicit cached_parts(std::int64_t T)
      : count(std::min<std::int64_t>(64, (T + least - 1) / least)), keys(count == 0 ? 0 : (T + count - 1) / count) {}
  /// Bytes of the sums and totals of all parts of `heads` rows of D elements.
  constexpr std::int64_t scratch(std::int64_t heads, std::int64_t D) const { return count <= 1 ? 0 : 4 * heads * count * (D + 2); }
};

}  // namespace isotope::vulkan
