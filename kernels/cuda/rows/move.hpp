#pragma once
/// Moves bytes unchanged between tensors of any strides. move.cu mirrors it.
#include <array>

#include <isotope/kernels/cuda/portable/move.h>
#include <isotope/fatbins/move.hpp>

#include "rows.hpp"

namespace isotope::cuda::portable {

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
inline void record_units(recording& r, const paired_axes& a, std::int64_t element, const move_operands& o) {
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
  gpu::move_operands g{};
  g.x = o.x;
  g.y = o.y;
  g.bits = o.bits;
  g.count = a.count() * element / unit;
  g.rank = a.rank;
  g.unit = std::int32_t(unit);
  g.fill = o.fill;
  for (int k = 0; k < a.rank; ++k) {
    const bool run = runs && k == a.rank - 1;
    g.dims[k] = run ? a[k].size * element / unit : a[k].size;
    g.x_strides[k] = run ? 1 : a[k].x * element / unit;
    g.y_strides[k] = run ? 1 : a[k].y * element / unit;
  }
  std::vector<range> reads;
  if (!o.fill) reads.push_back(o.reads);
  r.add(fatbins::move, "move_units", g, per_item(g.count), std::move(reads), {o.writes});
}

/// Records moves by tiles; returns false unless one axis is contiguous in x, another in y, and at most three more exist.
inline bool record_tiles(recording& r, const paired_axes& a, std::int64_t element, const move_operands& o) {
  const std::int64_t side = 128 / element;
  const int last = a.rank - 1;
  if ((element != 4 && element != 2) || a.rank < 2 || a.rank > 5 || a[last].y != 1 || a[last].x == 1 || a[last].size < 8) return false;
  int across = -1;
  for (int k = 0; k < last; ++k)
    if (a[k].x == 1 && a[k].size >= 8) across = k;
  if (across < 0) return false;
  gpu::tile_operands g{};
  g.x = o.x;
  g.y = o.y;
  g.P = a[across].size;
  g.Q = a[last].size;
  g.x_stride = a[last].x;
  g.y_stride = a[across].y;
  std::int64_t batch = 1;
  int axis = 0;
  for (int k = 0; k < last; ++k) {
    if (k == across) continue;
    g.dims[axis] = a[k].size;
    g.x_strides[axis] = a[k].x;
    g.y_strides[axis++] = a[k].y;
    batch *= a[k].size;
  }
  for (; axis < 3; ++axis) g.dims[axis] = 1;
  g.tiles_p = divide_up(g.P, side);
  g.tiles_q = divide_up(g.Q, side);
  const std::int64_t blocks = batch * g.tiles_p * g.tiles_q;
  if (blocks >= std::int64_t(1) << 31) return false;
  r.add(fatbins::move, element == 4 ? "move_tiles_32" : "move_tiles_16", g, per_block(blocks, 256), {o.reads}, {o.writes});
  return true;
}

/// y[i] = x[i] for every index i of x. `y` has the sizes of x.
inline void record_move(recording& r, const view& x, const view& y) {
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
      record_units(r, paired_axes({n / element}, {1}, {1}), element, {from, to, 0, {from, n}, {to, n}, false});
    };
    part(0, bulk);
    part(bulk, bytes - bulk);
    return;
  }
  if (!record_tiles(r, a, element, o)) record_units(r, a, element, o);
}

/// y = a pattern of eight bytes, repeated.
inline void record_fill(recording& r, const view& y, std::uint64_t bits) {
  const std::int64_t element = size_of(y.type), count = y.dims.count();
  if (count == 0) return;
  const auto part = [&](const view& v) {
    record_units(r, paired_axes(v.dims, v.strides, v.strides), element, {0, v.at, bits, {0, 0}, v, true});
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

}  // namespace isotope::cuda::portable
