#pragma once
/// What the reference kernels share when they record: one item per invocation, axes as 32-bit words.
#include <array>
#include <cstdint>

#include <isotope/backend/vulkan/launch.hpp>

namespace isotope::vulkan::reference {

inline constexpr std::int64_t group = 64;  // invocations of a workgroup

inline constants plain(const launch& l) { return {std::uint32_t(group), l.device->subgroup}; }
inline groups per_item(std::int64_t n) { return per_invocation(n, group); }
/// The value fits: a tensor has fewer than 2^31 elements.
inline std::uint32_t word(std::int64_t n) { return std::uint32_t(n); }
inline range scalars_of(const launch& l) { return {l.scalars, std::int64_t(sizeof(device_scalars))}; }

/// A tensor's axes, outermost first; missing ones have size 1.
struct axes {
  std::array<std::uint32_t, max_rank> dims{1, 1, 1, 1, 1, 1}, strides{};

  axes() = default;
  explicit axes(const view& v) : axes(v.dims, v.strides) {}
  axes(const shape& s, const extents& e) {
    for (int k = 0; k < s.rank; ++k) push(s[k], e[std::size_t(k)]);
  }
  void push(std::int64_t size, std::int64_t stride) {
    dims[std::size_t(rank)] = word(size);
    strides[std::size_t(rank++)] = word(stride);
  }
  int rank = 0;
};

/// The axes outside a bit mask, then those of the mask; `outer` is the number of the former.
struct axes_apart : axes {
  int outer = 0;
  axes_apart(const view& x, std::int64_t mask) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int k = 0; k < x.dims.rank; ++k)
        if (((mask >> k) & 1) == pass) push(x.dims[k], x.strides[std::size_t(k)]);
      if (pass == 0) outer = rank;
    }
  }
  std::int64_t results() const { return count(0, outer); }
  std::int64_t terms() const { return count(outer, rank); }

 private:
  std::int64_t count(int first, int end) const {
    std::int64_t n = 1;
    for (int k = first; k < end; ++k) n *= dims[std::size_t(k)];
    return n;
  }
};

}  // namespace isotope::vulkan::reference
