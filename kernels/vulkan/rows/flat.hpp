#pragma once
/// Dense tensors and flat regions, four elements per invocation. flat.glsl mirrors it.
#include <isotope/shaders/accumulate.hpp>

#include "rows.hpp"

namespace isotope::vulkan::portable {

inline constexpr std::int64_t flat_group = 256;  // invocations of a workgroup
inline constants flat(const launch& l) { return {word(flat_group), l.device->subgroup}; }
inline groups per_four(std::int64_t n) { return per_invocation(divide_up(n, 4), flat_group); }

/// Calls f(first, n) for pieces of a flat region, which may have more elements than a shader counts.
template <class F> void in_pieces(std::int64_t count, const F& f) {
  constexpr std::int64_t piece = std::int64_t(1) << 30;
  for (std::int64_t first = 0; first < count; first += piece) f(first, std::min(piece, count - first));
}
inline std::uint64_t offset(const view& v, std::int64_t first) { return v.at + std::uint64_t(first * size_of(v.type)); }

/// y[i] = x[i] or, if `add`, y[i] += x[i]; both are dense and aligned.
inline void record_flat(const launch& l, recording& r, const view& x, const view& y, bool add) {
  in_pieces(y.dims.count(), [&](std::int64_t first, std::int64_t n) {
    const struct {
      std::uint64_t into, x;
      std::uint32_t count;
    } push{offset(y, first), offset(x, first), word(n)};
    const range to = elements(push.into, n, y.type);
    std::vector<range> reads{elements(push.x, n, x.type)};
    if (add) reads.push_back(to);
    r.add(shaders::accumulate, flat(l).add(y.type).add(x.type).add(add), push, per_four(n), std::move(reads), {to});
  });
}

}  // namespace isotope::vulkan::portable
