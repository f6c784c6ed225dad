#pragma once
/// Kernels that work row by row: how rows are distributed to subgroups and workgroups. rows.glsl mirrors it.
#include <algorithm>
#include <cstdint>

#include <isotope/backend/vulkan/launch.hpp>

namespace isotope::vulkan {
namespace portable {

/// The value fits: a tensor has fewer than 2^31 elements.
inline std::uint32_t word(std::int64_t n) { return std::uint32_t(n); }
constexpr std::int64_t divide_up(std::int64_t n, std::int64_t d) { return (n + d - 1) / d; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t d) { return divide_up(n, d) * d; }

/// Whether shaders can read the format as four floats at a time.
inline bool loads_as_f32(dtype t) { return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16; }
/// Whether four elements of v are one access: aligned to 16 bytes in f32, 8 in 16-bit formats.
inline bool aligned(const view& v) { return v.at % std::uint64_t(4 * size_of(v.type)) == 0; }
template <class... V> bool all_aligned(const V&... v) { return (aligned(v) && ...); }
/// Returns the blocks of four elements that hold the n elements of a row; rows that are not whole blocks may begin and end inside one.
inline std::int64_t blocks_of_row(std::int64_t n, bool wide) { return wide ? n / 4 : divide_up(n + 3, 4); }

/// Returns the largest workgroup of full subgroups, at most 32 of them: few devices take more.
inline std::int64_t largest_workgroup(const device_limits& d) {
  const std::int64_t subgroups = std::min<std::int64_t>(32, d.workgroup_subgroups);
  return std::min({std::int64_t(1024), std::int64_t(d.invocations), subgroups * d.subgroup}) / d.subgroup * d.subgroup;
}
/// Returns `wanted` invocations or as many as the device takes, in whole subgroups.
inline std::int64_t workgroup(const device_limits& d, std::int64_t wanted) {
  return std::min(largest_workgroup(d), round_up(std::max<std::int64_t>(wanted, 1), d.subgroup));
}

/// Teams for rows of `blocks` blocks: a team of `size` invocations per row, each with `hold` blocks of it in registers.
struct team {
  // Workgroups are multiples of this, so that they are whole subgroups on every device that subgroups.hpp accepts.
  static constexpr std::int64_t whole = 64;
  std::int64_t workgroup = 0, size = 0, hold = 0, most = 0;  // most: largest workgroup of independent subgroups

  std::int64_t rows() const { return workgroup / size; }  // of a workgroup
  /// Returns the workgroups for n rows. Teams that are subgroups are independent of their neighbours.
  groups take(std::int64_t n) const {
    groups g = cover(n, rows());
    if (most == 0) return g;
    g.items = n * size;
    g.unit = word(size);
    g.most = word(most);
    return g;
  }

  /// Returns teams that hold rows in registers: a subgroup up to `few` blocks per invocation, else a workgroup, up to `most`; hold = 0: the row is
  /// too long.
  static team holding(const device_limits& d, std::int64_t blocks, std::int64_t few, std::int64_t most) {
    const std::int64_t subgroup = d.subgroup;
    if (blocks <= few * subgroup)
      return {portable::workgroup(d, 256), subgroup, std::max<std::int64_t>(1, divide_up(blocks, subgroup)), largest_workgroup(d)};
    for (std::int64_t w = std::min<std::int64_t>(256, largest_workgroup(d)); w <= largest_workgroup(d); w *= 2) {
      const std::int64_t hold = divide_up(blocks, w), size = round_up(divide_up(blocks, hold), whole);
      if (hold <= most) return {size, size, hold};
    }
    return {};
  }
  /// Returns teams that stream rows: a subgroup up to `few` blocks per invocation, else a workgroup of at most 256.
  static team streaming(const device_limits& d, std::int64_t blocks, std::int64_t few) {
    const std::int64_t subgroup = d.subgroup, w = portable::workgroup(d, 256);
    if (blocks <= few * subgroup) return {w, subgroup, 1, largest_workgroup(d)};
    const std::int64_t size = std::min(w, round_up(std::max<std::int64_t>(1, blocks), whole));
    return {size, size, 1};
  }
  /// Returns one workgroup for everything.
  static team alone(const device_limits& d) { return {largest_workgroup(d), largest_workgroup(d), 1}; }
};

/// Returns the constants of rows.glsl.
inline constants of_rows(const launch& l, const team& t, bool wide) {
  return constants{word(t.workgroup), l.device->subgroup, word(t.size), word(t.hold)}.add(wide);
}
inline range scalars_of(const launch& l) { return {l.scalars, std::int64_t(sizeof(device_scalars))}; }
/// Returns the range of n elements of format t at an address.
inline range elements(std::uint64_t at, std::int64_t n, dtype t) { return {at, n * size_of(t)}; }

/// Leaves a launch to the reference kernel, for shapes and formats without a fast kernel.
template <class Op, class P> void fall_through(const launch& l, recording& r, std::string_view why) {
  enter_set(r, kernels::reference::name, why);
  kernel<Op, P, kernels::reference>::record(l, r);
}
/// Returns the scratch that the reference kernel needs.
template <class Op, class P> constexpr std::int64_t scratch_below(const step_shapes& s) {
  if constexpr (requires { kernel<Op, P, kernels::reference>::scratch(s); }) return kernel<Op, P, kernels::reference>::scratch(s);
  else return 0;
}

}  // namespace portable
}  // namespace isotope::vulkan
