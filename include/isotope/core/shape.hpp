#pragma once
/// Logical shapes of up to six dimensions. A dimension is a constant, or a scalar dimension: a maximum, and a step scalar that holds the actual size.
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "fixed_string.hpp"

namespace isotope {

inline constexpr int max_rank = 6;
using extents = std::array<std::int64_t, max_rank>;
/// The most elements of a tensor, so that bytes, offsets and sums over all tensors of a plan stay far below 2^63.
inline constexpr std::int64_t max_elements = std::int64_t(1) << 40;

/// a b, or the largest number if it overflows.
constexpr std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}

/// The number of late sizes that a program may have.
inline constexpr int late_slots = 16;
/// A late dimension: its size is known only when a step runs. `limit` is the maximum that memory is planned for; `slot`, below `late_slots`, is the index
/// of the step scalar that holds the size, which is clamped to [0, limit]. Any axis of an input or a state may be late, and results inherit late axes. All
/// dimensions of one slot have one limit.
///
/// Inputs, outputs and temporaries are dense for the actual sizes: the host writes an input's elements without gaps to the front of its span, and reads an
/// output in the same way. A state keeps the strides of the limits, so that its elements stay in place while sizes change; ops that need dense operands
/// read a copy.
struct scalar_dim {
  std::int64_t limit = 0;
  int slot = 0;
};

/// One entry of a shape: a number, or a `scalar_dim`.
struct dim {
  std::int64_t size = 0;
  std::int8_t slot = -1;
  constexpr dim(std::integral auto n) : size(std::int64_t(n)) {}
  constexpr dim(scalar_dim d) : size(d.limit), slot(d.slot >= 0 && d.slot < late_slots ? std::int8_t(d.slot) : std::int8_t(late_slots)) {}
  friend constexpr bool operator==(const dim&, const dim&) = default;
};

/// (d0, d1, ...), outermost first. Sizes are 64-bit; a scalar dimension counts with its maximum.
struct shape {
  extents d{1, 1, 1, 1, 1, 1};
  std::array<std::int8_t, max_rank> slots{-1, -1, -1, -1, -1, -1};
  std::int8_t rank = 0;
  bool too_deep = false;  // more than max_rank dimensions were given; reported where the shape is used

  constexpr shape() = default;
  constexpr shape(std::initializer_list<dim> l) {
    for (const dim& x : l) push(x);
  }
  constexpr void push(dim x) {
    if (rank == max_rank) {
      too_deep = true;
      return;
    }
    d[std::size_t(rank)] = x.size;
    slots[std::size_t(rank)] = x.slot;
    ++rank;
  }
  /// The size of axis i; negative i counts from the end, as in NumPy. A missing axis has size 1, as in broadcasting.
  constexpr std::int64_t operator[](int i) const { return axis(i).size; }
  constexpr dim axis(int i) const {
    const int k = i < 0 ? i + rank : i;
    if (k < 0 || k >= rank) return 1;
    dim r(d[std::size_t(k)]);
    r.slot = slots[std::size_t(k)];
    return r;
  }
  constexpr bool late(int i) const { return axis(i).slot >= 0; }
  /// Replaces axis i, which must exist.
  constexpr void set(int i, dim x) {
    d[std::size_t(i < 0 ? i + rank : i)] = x.size;
    slots[std::size_t(i < 0 ? i + rank : i)] = x.slot;
  }
  /// The number of elements, or the largest number if it overflows; `fault` rejects such shapes.
  constexpr std::int64_t count() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n = saturated_product(n, d[std::size_t(i)]);
    return n;
  }
  /// Why no tensor can have this shape; empty if one can. Axes of size 0 count as 1 here, so that strides do not overflow either.
  constexpr std::string_view fault() const {
    if (too_deep) return "has more than 6 dimensions";
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) {
      if (d[std::size_t(i)] < 0) return "has a negative dimension";
      n = saturated_product(n, d[std::size_t(i)] == 0 ? 1 : d[std::size_t(i)]);
    }
    return n <= max_elements ? "" : "has more than 2^40 elements";
  }
  constexpr std::int64_t cols() const { return rank == 0 ? 1 : d[std::size_t(rank - 1)]; }
  /// The product of all sizes but the last, even if the last is 0.
  constexpr std::int64_t rows() const {
    std::int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n = saturated_product(n, d[std::size_t(i)]);
    return n;
  }
  constexpr shape with_cols(dim n) const {
    shape s = *this;
    s.set(-1, n);
    return s;
  }
  constexpr bool has_scalar() const {
    for (int i = 0; i < rank; ++i)
      if (slots[std::size_t(i)] >= 0) return true;
    return false;
  }
  friend constexpr bool operator==(const shape& a, const shape& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i)
      if (a.d[std::size_t(i)] != b.d[std::size_t(i)] || a.slots[std::size_t(i)] != b.slots[std::size_t(i)]) return false;
    return true;
  }
};

/// Strides, in elements, of a dense row-major tensor.
constexpr extents dense_strides(const shape& s) {
  extents r{};
  std::int64_t n = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    r[std::size_t(i)] = n;
    n = saturated_product(n, s.d[std::size_t(i)]);
  }
  return r;
}
/// Whether the elements follow one another in row-major order (axes of size 1 do not matter).
constexpr bool is_dense(const shape& s, const extents& strides) {
  std::int64_t n = 1;
  for (int i = s.rank - 1; i >= 0; --i) {
    if (s.d[std::size_t(i)] != 1 && strides[std::size_t(i)] != n) return false;
    n = saturated_product(n, s.d[std::size_t(i)]);
  }
  return true;
}

/// The NumPy broadcast of two shapes: aligned at the last axis, sizes equal or 1. `ok` is false if the shapes do not broadcast. A late size broadcasts
/// with itself and with a constant 1.
struct broadcast_result {
  shape s;
  bool ok = true;
};
constexpr broadcast_result broadcast(const shape& a, const shape& b) {
  broadcast_result r;
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
    const dim x = ia < 0 ? dim(1) : a.axis(ia), y = ib < 0 ? dim(1) : b.axis(ib);
    const bool repeats = x.size == 1 && x.slot < 0;
    if ((x.size != y.size || x.slot != y.slot) && !repeats && !(y.size == 1 && y.slot < 0)) r.ok = false;
    r.s.push(repeats ? y : x);
  }
  return r;
}

/// Prints [4,1024,768]; a scalar dimension prints as <=1024.
template <std::size_t N> constexpr fixed_string<N>& operator<<(fixed_string<N>& t, const shape& s) {
  t << '[';
  for (int i = 0; i < s.rank; ++i) {
    if (i != 0) t << ',';
    if (s.slots[std::size_t(i)] >= 0) t << "<=";
    t << s.d[std::size_t(i)];
  }
  if (s.too_deep) t << ",...";
  return t << ']';
}

}  // namespace isotope
