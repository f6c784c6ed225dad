#pragma once
/// Many devices: how they are arranged, and how tensors are divided between them.
#include <array>
#include <cstdint>
#include <initializer_list>

#include "shape.hpp"

namespace isotope {

/// The indices of one rank along the axes of a mesh.
struct mesh_position {
  int data = 0, tensor = 0;
  friend constexpr bool operator==(const mesh_position&, const mesh_position&) = default;
};
/// The devices that train one model. `data` replicas of the model work on different rows of a step; the `tensor` devices of a replica share the work on each
/// row and hold pieces of its weights. Rank = data index x tensor + tensor index, so the ranks
/// of a tensor group, which communicate most, are neighbours.
struct device_mesh {
  int data = 1, tensor = 1;
  constexpr int ranks() const { return data * tensor; }
  constexpr bool single() const { return data == 1 && tensor == 1; }
  constexpr mesh_position position_of(int rank) const { return {rank / tensor, rank % tensor}; }
  constexpr int rank_of(const mesh_position& p) const { return p.data * tensor + p.tensor; }
  friend constexpr bool operator==(const device_mesh&, const device_mesh&) = default;
};
static_assert(device_mesh{2, 4}.rank_of({1, 2}) == 6 && device_mesh{2, 4}.position_of(6) == mesh_position{1, 2});
/// Ranks that communicate: those of one replica, or those that hold the same pieces of all replicas.
enum class rank_group : std::uint8_t { tensor, data };

/// The most groups of an axis_split.
inline constexpr int max_split_groups = 4;

/// How an axis is divided between the devices of a tensor group. The axis consists of groups, one behind the other; each device holds its piece of every group,
/// one behind the other. A projection to queries, keys and values has three groups, so that each device gets whole heads of all three.
///
/// Where a group consists of units, such as heads, that the devices do not divide evenly, each device gets as many whole units, and the last one, which has fewer, zeros
/// behind them: 25 heads of two devices are 13 and 12 + 1 of zeros.
struct axis_split {
  std::int8_t axis = -1;   // -1: it is not divided
  std::int8_t groups = 0;  // 0: the axis is one group, whose size is not written here
  std::int64_t each = 0;   // of a padded axis: rows of each device, of which the last have some without meaning; 0: sizes divide
  std::int64_t units =
      0;  // of each group: heads, of which a device gets whole ones, and the last may have fewer; 0: any element may be the first of a piece
  bool padded = false;                                 // the axis, of one group, need not divide: the last device has fewer rows
  std::array<std::int64_t, max_split_groups> sizes{};  // of the groups

  static constexpr axis_split along(int axis) { return {.axis = std::int8_t(axis)}; }
  static constexpr axis_split with_padding(int axis) { return {.axis = std::int8_t(axis), .padded = true}; }
  static constexpr axis_split in_groups(int axis, std::initializer_list<std::int64_t> sizes) {
    axis_split r{.axis = std::int8_t(axis)};
    for (auto n : sizes)
      if (r.groups < max_split_groups) r.sizes[std::size_t(r.groups++)] = n;
    return r;
  }
  /// One group of this size.
  static constexpr axis_split whole(int axis, std::int64_t size) { return {.axis = std::int8_t(axis), .groups = 1, .sizes = {size}}; }
  /// The same groups, which consist of so many units each.
  constexpr axis_split in_units(std::int64_t n) const {
    axis_split r = *this;
    r.units = n;
    return r;
  }

  constexpr bool divides() const { return axis >= 0; }
  /// The size of the axis of all devices together.
  constexpr std::int64_t size() const {
    std::int64_t n = 0;
    for (int g = 0; g < groups; ++g) n += sizes[std::size_t(g)];
    return n;
  }
  /// The size of a device's piece of a group, with padding.
  constexpr std::int64_t piece(int group, int parts) const {
    const std::int64_t n = sizes[std::size_t(group)];
    if (each > 0) return each;
    return units > 0 ? (units + parts - 1) / parts * (n / units) : n / parts;
  }
  /// The size of a device's pieces together.
  constexpr std::int64_t local(int parts) const {
    if (each > 0) return each;
    std::int64_t n = 0;
    for (int g = 0; g < groups; ++g) n += piece(g, parts);
    return n;
  }
  /// Whether units that `parts` does not divide leave no device without one.
  constexpr bool pads_units(int parts) const {
    for (int g = 0; g < groups; ++g)
      if (units > 0 && sizes[std::size_t(g)] % units != 0) return false;
    return !padded && units % parts != 0 && (units + parts - 1) / parts * (parts - 1) < units;
  }
  /// The first group that `parts` does not divide, or -1.
  constexpr int uneven_group(int parts) const {
    for (int g = 0; g < groups && !padded && units == 0; ++g)
      if (sizes[std::size_t(g)] % parts != 0) return g;
    return -1;
  }
  /// Whether both divide their axis in the same way, whichever axis it is.
  constexpr bool same_pieces(const axis_split& o) const {
    return groups == o.groups && sizes == o.sizes && each == o.each && units == o.units;
  }
  /// The same pieces of another axis.
  constexpr axis_split moved_to(int other) const {
    axis_split r = *this;
    r.axis = std::int8_t(other);
    return r;
  }
  friend constexpr bool operator==(const axis_split&, const axis_split&) = default;
};

/// Where the elements of a value are.
///
/// whole: each device of a tensor group has all of them. divided: each has its pieces of one axis. partial: each has a tensor of the whole shape, and the
/// value is the sum of all devices' tensors.
struct distribution {
  enum class kind : std::uint8_t { whole, divided, partial } how = kind::whole;
  axis_split along{};  // of a divided value

  static constexpr distribution divided(const axis_split& s) { return {kind::divided, s}; }
  static constexpr distribution partial() { return {kind::partial, {}}; }
  constexpr bool is_whole() const { return how == kind::whole; }
  constexpr bool is_divided() const { return how == kind::divided; }
  constexpr bool is_partial() const { return how == kind::partial; }
};

}  // namespace isotope
