#pragma once
/// Where the operands of a step lie while its variants are timed: in memory of their own, so that no tensor of the program changes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../../core/precision.hpp"
#include "hazards.hpp"

namespace isotope {

class known_choices;  // known_choices.hpp

/// The bytes of a page in which operands keep their places while a VariantTimer times: T::page, or 4,096.
template <class T> constexpr std::uint64_t page_of() {
  if constexpr (requires { T::page; }) return T::page;
  else return 4096;
}

/// Collects the bytes of a step, then gives them other addresses. Bytes that overlap keep their distances, and each address its place in a page, by which caches choose their lines, so that
/// kernels see the same step. There are three areas: operands that are only read, which hold noise; those of whole numbers, zeros, which are valid ids; and what is written.
class operand_places {
 public:
  enum class area : std::uint8_t { noise, zeros, written };
  static constexpr std::size_t areas = 3;

  /// @param page  bytes of a page: a power of two, at least 4,096
  explicit operand_places(std::uint64_t page = 4096) : page_(page) {}

  template <class View> void add(const View& v, bool written) {
    const bool number = is_floating(v.type) || in_blocks(v.type);
    add({v.at, v.bytes}, written ? area::written : number ? area::noise : area::zeros);
    if (written) results_.push_back({{v.at, v.bytes}, v.type});
  }
  /// What the step writes, where the program has it.
  struct result {
    byte_range bytes;
    dtype type = dtype::f32;
  };
  const std::vector<result>& results() const { return results_; }
  void add(const byte_range& r, area where) {
    if (r.bytes() <= 0) return;
    island i{r, where};
    std::erase_if(islands_, [&](const island& o) {
      if (!o.from.overlaps(i.from)) return false;
      i.from.first = std::min(i.from.first, o.from.first);
      i.from.end = std::max(i.from.end, o.from.end);
      i.where = std::max(i.where, o.where);
      return true;
    });
    islands_.push_back(i);
  }
  /// Lays the areas out from their first bytes on, and adds the address of each area to what `at` returns.
  void place(std::uint64_t noise, std::uint64_t zeros, std::uint64_t written) {
    const std::uint64_t first[] = {noise, zeros, written};
    for (std::size_t k = 0; k < areas; ++k) {
      std::uint64_t next = (first[k] + page_ - 1) / page_ * page_;
      for (island& i : islands_) {
        if (std::size_t(i.where) != k) continue;
        i.to = next + i.from.first % page_;
        next = (i.to + std::uint64_t(i.from.bytes()) + slack + page_ - 1) / page_ * page_;
      }
    }
    placed_ = true;
  }
  /// Leaves bytes where the program has them: numbers that are only read, and what is written where `may_write` says so of all of it.
  template <class MayWrite> void stay(const MayWrite& may_write) {
    for (island& i : islands_)
      if (i.where == area::noise || (i.where == area::written && may_write(i.from))) i.to = i.from.first;
  }
  /// Calls each(bytes in the program, address of their own) for numbers that are only read, of places that do not stay.
  template <class Each> void each_number(const Each& each) const {
    for (const island& i : islands_)
      if (i.where == area::noise) each(i.from, i.to);
  }
  bool placed() const { return placed_; }
  /// The bytes of an area, wherever it begins.
  std::int64_t bytes_of(area where) const {
    const auto page = std::int64_t(page_);
    std::int64_t n = page;
    for (const island& i : islands_)
      if (i.where == where) n += (i.from.bytes() + std::int64_t(slack) + 2 * page - 1) / page * page;
    return n;
  }
  /// The other address of a byte of the step; of any other byte, its own.
  std::uint64_t at(std::uint64_t from) const {
    for (const island& i : islands_)
      if (from >= i.from.first && from < i.from.end) return i.to + (from - i.from.first);
    return from;
  }

 private:
  static constexpr std::uint64_t slack = 64;
  struct island {
    byte_range from;
    area where = area::noise;
    std::uint64_t to = 0;
  };
  std::uint64_t page_;
  std::vector<island> islands_;
  std::vector<result> results_;
  bool placed_ = false;
};

/// A way to record a plan: all steps or one, with remembered choices, at the plan's addresses or elsewhere.
struct step_recording {
  const known_choices* known = nullptr;
  std::int32_t only = -1;            // the step; -1: all
  operand_places* places = nullptr;  // null: where the plan has them. Until it is placed, it collects.

  /// Moves the operands of a step, or notes where they are. The first `inputs` views are read.
  template <class View> void move(std::span<View> views, std::size_t inputs, std::uint64_t& scratch, std::int64_t scratch_bytes) const {
    if (places == nullptr) return;
    if (!places->placed()) {
      for (std::size_t k = 0; k < views.size(); ++k) places->add(views[k], k >= inputs);
      return places->add({scratch, scratch_bytes}, operand_places::area::written);
    }
    for (View& v : views) v.at = places->at(v.at);
    if (scratch_bytes > 0) scratch = places->at(scratch);
  }
};

}  // namespace isotope
