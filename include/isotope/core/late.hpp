#pragma once
/// Strides of tensors whose axes have sizes known late: what a dense tensor of the actual sizes has.
#include <array>
#include <cstdint>

#include "shape.hpp"

namespace isotope {

/// Sizes of scalar dimensions, by slot.
using late_sizes = std::array<std::int64_t, late_slots>;

/// `factor` times late sizes, each as often as its three bits of `powers` say: a tensor has at most six axes.
struct late_number {
  std::int64_t factor = 0;
  std::uint64_t powers = 0;

  friend constexpr bool operator==(const late_number&, const late_number&) = default;
  constexpr late_number times(dim x) const {
    if (x.slot >= 0) return {factor, powers + (std::uint64_t(1) << (3 * x.slot))};
    return {saturated_product(factor, x.size), powers};
  }
  constexpr std::int64_t at(const late_sizes& sizes) const {
    std::int64_t n = factor;
    for (int slot = 0; slot < late_slots && powers >> (3 * slot) != 0; ++slot)
      for (auto k = (powers >> (3 * slot)) & 7; k > 0; --k) n *= sizes[std::size_t(slot)];
    return n;
  }
};

/// Where the elements of a tensor lie that is part of a dense one of the actual sizes, in elements. The first is at the sum of `offset`: entries without
/// a factor take no part. The offsets of views of one tensor have at most six different powers, since each axis of a dense tensor divides the next.
struct late_layout {
  std::array<late_number, max_rank> strides{}, offset{};

  constexpr void move(late_number by) {
    for (auto& x : offset)
      if (by.factor != 0 && (x.factor == 0 || x.powers == by.powers)) {
        x = {x.factor + by.factor, by.powers};
        return;
      }
  }
  /// Whether something in here depends on late sizes.
  constexpr bool late() const {
    std::uint64_t powers = 0;
    for (std::size_t i = 0; i < std::size_t(max_rank); ++i) powers |= strides[i].powers | offset[i].powers;
    return powers != 0;
  }
};

/// The number of elements.
constexpr late_number late_count(const shape& s) {
  late_number n{1, 0};
  for (int i = 0; i < s.rank; ++i) n = n.times(s.axis(i));
  return n;
}
/// As `dense_strides`.
constexpr late_layout late_dense(const shape& s) {
  late_layout r;
  late_number n{1, 0};
  for (int i = s.rank - 1; i >= 0; --i) {
    r.strides[std::size_t(i)] = n;
    n = n.times(s.axis(i));
  }
  return r;
}
/// As `is_dense`, whatever the actual sizes are.
constexpr bool is_late_dense(const shape& s, const late_layout& l) {
  late_number n{1, 0};
  for (int i = s.rank - 1; i >= 0; --i) {
    const dim x = s.axis(i);
    if ((x.slot >= 0 || x.size != 1) && l.strides[std::size_t(i)] != n) return false;
    n = n.times(x);
  }
  return true;
}

}  // namespace isotope
