#pragma once
/// Operands at the sizes that late dimensions have in a step.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "plan.hpp"

namespace isotope {

/// Turns the scalars of a step into the places of operands.
class late_resolver {
 public:
  late_resolver() = default;
  explicit late_resolver(const plan_view& p) : late_(p.late) {
    for (const auto& o : p.operands)
      for (int i = 0; i < o.dims.rank; ++i)
        if (const dim x = o.dims.axis(i); x.slot >= 0) limits_[std::size_t(x.slot)] = x.size, any_ = true;
  }
  /// Whether the plan has late dimensions.
  bool any() const { return any_; }
  /// Takes the sizes of a step, from zero to their limits. Returns whether they are others than before.
  bool set(const std::array<std::int32_t, late_slots>& scalars) {
    late_sizes now{};
    for (std::size_t i = 0; i < std::size_t(late_slots); ++i) now[i] = std::clamp<std::int64_t>(scalars[i], 0, limits_[i]);
    const bool other = !set_ || now != sizes_;
    sizes_ = now;
    set_ = true;
    return other;
  }
  /// The operand at the sizes of the step.
  operand at(operand o) const {
    if (!any_) return o;
    for (int i = 0; i < o.dims.rank; ++i)
      if (const auto slot = o.dims.slots[std::size_t(i)]; slot >= 0) o.dims.d[std::size_t(i)] = sizes_[std::size_t(slot)];
    if (o.late < 0) return o;
    const late_operand& l = late_[std::size_t(o.late)];
    std::int64_t first = 0, last = o.dims.count() == 0 ? -1 : 0;
    for (const auto& x : l.layout.offset) first += x.at(sizes_);
    for (int i = 0; i < o.dims.rank; ++i) {
      o.strides[std::size_t(i)] = l.layout.strides[std::size_t(i)].at(sizes_);
      if (last >= 0) last += (o.dims[i] - 1) * o.strides[std::size_t(i)];
    }
    o.at = l.at + first * size_of(o.type);
    o.bytes = (last + 1) * size_of(o.type);
    return o;
  }

 private:
  std::span<const late_operand> late_;
  late_sizes limits_{}, sizes_{};
  bool any_ = false, set_ = false;
};

}  // namespace isotope
