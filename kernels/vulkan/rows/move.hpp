#pragma once
/// Moves bytes unchanged between tensors of any strides. move.comp and transpose.comp mirror it.
#include <array>

#include <isotope/shaders/move.hpp>
#include <isotope/shaders/transpose.hpp>

#include "flat.hpp"

namespace isotope::vulkan::portable {

/// The axes of a pair of tensors of equal sizes; neighbouring axes that are contiguous in both are merged.
struct paired_axes {
  struct axis {
    std::int64_t size = 1, x = 0, y = 0;  // strides in elements
  };
  std::array<axis, max_rank> axes{};
  int rank = 0;

  paired_axes(const shape& dims, const extents& x, const extents& y) {
    for (int k = 0; k < dims.rank; ++k) {
      const axis a{dims[k], x[std::size_t(k)], y[std::size_t(k)]};
      if (a.size == 1) continue;
      axis* last = rank > 0 ? &axes[std::size_t(rank - 1)] : nullptr;
      if (last != nullptr && last->x == a.size * a.x && last->y == a.size * a.y) *last = {last->size * a.size, a.x, a.y};
      else axes[std::size_t(rank++)] = a;
    }
  }
  const axis& operator[](int k) const { return axes[std::size_t(k)]; }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (int k = 0; k < rank; ++k) n *= axes[std::size_t(k)].size;
    return n;
  }
};

/// The source and target of a move; without `x`, a pattern of eight bytes is repeated.
struct move_operands {
  std::uint64_t x = 0, y = 0, bits = 0;
  range reads{0, 0}, writes{0, 0};
  bool fill = false;
};

/// Records moves in units of up to 16 bytes that divide what is contiguous.
inline void record_units(const launch& l, recording& r, const paired_axes& a, std::int64_t element, const move_operands& o) {
  if (a.count() == 0) return;
  std::int64_t together = element;
  const bool runs = a.rank > 0 && a[a.rank - 1].y == 1 && (o.fill || a[a.rank - 1].x == 1);
  if (runs) together *= a[a.rank - 1].size;
  std::int64_t unit = 16;
  const auto fits = [&] {
    if (together % unit != 0 || o.y % std::uint64_t(unit) != 0 || (!o.fill && o.x % std::uint64_t(unit) != 0)) return false;
    for (int k = 0; k < a.rank - (runs ? 1 : 0); ++k)
      if (a[k].y * element % unit != 0 || (!o.fill && a[k].x * element % unit != 0)) return false;
    return true;
  };
  while (unit > element && !fits()) unit /= 2;
  struct {
    std::uint64_t x, y, bits;
    std::uint32_t count;
    std::array<std::uint32_t, max_rank> dims, x_strides, y_strides;
  } push{o.x, o.y, o.bits, word(a.count() * element / unit), {1, 1, 1, 1, 1, 1}, {}, {}};
  for (int k = 0; k < a.rank; ++k) {
    const bool run = runs && k == a.rank - 1;
    push.dims[std::size_t(k)] = word(run ? a[k].size * element / unit : a[k].size);
    push.x_strides[std::size_t(k)] = word(run ? 1 : a[k].x * element / unit);
    push.y_strides[std::size_t(k)] = word(run ? 1 : a[k].y * element / unit);
  }
  std::vector<range> reads;
  if (!o.fill) reads.push_back(o.reads);
  r.add(shaders::move, flat(l).add(unit).add(a.rank).add(o.fill), push, per_invocation(push.count, flat_group), std::move(reads),
        {o.writes});
}

/// Records moves by tiles; returns false unless one axis is contiguous in x, another in y, and at most three more exist.
inline bool record_tiles(const launch& l, recording& r, const paired_axes& a, std::int64_t element, const move_operands& o) {
  constexpr std::int64_t side = 32;
  const int last = a.rank - 1;
  if ((element != 4 && element != 2) || a.rank < 2 || a.rank > 5 || a[last].y != 1 || a[last].x == 1 || a[last].size < 8) return false;
  int across = -1;
  for (int k = 0; k < last; ++k)
    if (a[k].x == 1 && a[k].size >= 8) across = k;
  if (across < 0) return false;
  struct {
    std::uint64_t x, y;
    std::uint32_t P, Q, x_stride, y_stride;
    std::array<std::uint32_t, 3> dims, x_strides, y_strides;
  } push{o.x, o.y, word(a[across].size), word(a[last].size), word(a[last].x), word(a[across].y), {1, 1, 1}, {}, {}};
  std::int64_t batch = 1;
  std::size_t axis = 0;
  for (int k = 0; k < last; ++k) {
    if (k == across) continue;
    push.dims[axis] = word(a[k].size);
    push.x_strides[axis] = word(a[k].x);
    push.y_strides[axis++] = word(a[k].y);
    batch *= a[k].size;
  }
  const std::int64_t tiles_q = divide_up(a[last].size, side), tiles_p = divide_up(a[across].size, side);
  if (batch > 65535 || tiles_p > 65535 || tiles_q > 65535) return false;
  r.add(shaders::transpose, flat(l).add(element), push, groups{word(tiles_q), word(tiles_p), word(batch)}, {o.reads}, {o.writes});
  return true;
}

/// y[i] = x[i] for every index i of x. `y` has the sizes of x.
inline void record_move(const launch& l, recording& r, const view& x, const view& y) {
  const std::int64_t element = size_of(x.type);
  const paired_axes a(x.dims, x.strides, y.strides);
  if (a.count() == 0) return;
  const move_operands o{x.at, y.at, 0, x, y, false};
  if (a.rank == 1 && a[0].x == 1 && a[0].y == 1 && x.at % 16 == 0 &&
      y.at % 16 == 0) {  // a tail of bytes must not narrow the units of the rest
    const std::int64_t bytes = a[0].size * element, bulk = bytes / 16 * 16;
    const auto part = [&](std::int64_t first, std::int64_t n) {
      if (n == 0) return;
      const auto from = x.at + std::uint64_t(first), to = y.at + std::uint64_t(first);
      record_units(l, r, paired_axes({n / element}, {1}, {1}), element, {from, to, 0, {from, n}, {to, n}, false});
    };
    part(0, bulk);
    part(bulk, bytes - bulk);
    return;
  }
  if (!record_tiles(l, r, a, element, o)) record_units(l, r, a, element, o);
}

/// y = a pattern of eight bytes, repeated.
inline void record_fill(const launch& l, recording& r, const view& y, std::uint64_t bits) {
  const std::int64_t element = size_of(y.type), count = y.dims.count();
  if (count == 0) return;
  const auto part = [&](const view& v) {
    record_units(l, r, paired_axes(v.dims, v.strides, v.strides), element, {0, v.at, bits, {0, 0}, v, true});
  };
  const std::int64_t bulk = count * element / 16 * 16;
  if (!is_dense(y.dims, y.strides) || y.at % 16 != 0 || bulk == 0 || bulk == count * element) return part(y);
  view v = y;
  v.dims = shape{bulk / element};
  v.strides = {1};
  v.bytes = bulk;
  part(v);
  v.dims = shape{count - bulk / element};
  v.at += std::uint64_t(bulk);
  v.bytes = count * element - bulk;
  part(v);
}

/// Returns a range of one axis of y.
inline view part_of(const view& y, int axis, std::int64_t first, std::int64_t length) {
  view v = y;
  v.dims.set(axis, length);
  v.at += std::uint64_t(first * y.strides[std::size_t(axis)] * size_of(y.type));
  std::int64_t last = 0;
  for (int k = 0; k < v.dims.rank; ++k) last += (v.dims[k] - 1) * v.strides[std::size_t(k)];
  v.bytes = v.dims.count() == 0 ? 0 : (last + 1) * size_of(y.type);
  return v;
}

}  // namespace isotope::vulkan::portable
