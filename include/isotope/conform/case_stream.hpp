#pragma once
/// Checks a stream of cases: it has some of every op, each case once, consecutive numbers, and is the same whenever it is produced. Memory is
/// bounded: a repetition is detected among the last 65,536 different cases.
#include <array>
#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "spec.hpp"

namespace isotope::conform {

class case_stream {
 public:
  /// Checks the next case and keeps the first fault.
  void add(const test_case& c) {
    const std::uint64_t h = hash_of(c);
    whole_.add(h);
    if (known_.empty()) known_.resize(window);
    auto& slot = known_[h % window];
    if (slot == h) blame(c, "gives one case twice, number " + std::to_string(c.id));
    slot = h;
    if (c.id >= case_id_end - 1) blame(c, "gives number " + std::to_string(c.id) + ", behind which there is none");
    if (any_ && c.id != last_ + 1) blame(c, "gives number " + std::to_string(c.id) + " after " + std::to_string(last_));
    any_ = true;
    last_ = c.id;
    if (ops_.empty() || last_op_ != c.of->name) ops_.insert(last_op_ = c.of->name);
  }
  /// @error invalid_argument: the stream is broken, or has no case of one of the ops
  result<void> check(std::span<const spec* const> ops) const {
    if (!wrong_.empty()) return broken(wrong_);
    for (const spec* s : ops)
      if (!ops_.contains(s->name)) return broken("op_spec<" + std::string(s->name) + ">::cases gives none");
    return {};
  }
  /// @error invalid_argument: `again` saw other cases
  result<void> check_same(const case_stream& again) const {
    if (whole_.value() == again.whole_.value()) return {};
    return broken("the cases are others when they are asked for again");
  }

 private:
  static constexpr std::size_t window = 1 << 16;
  stable_hash whole_;
  std::vector<std::uint64_t> known_;  // by the low bits
  std::set<std::string_view> ops_;
  std::string_view last_op_;
  std::string wrong_;
  std::uint64_t last_ = 0;
  bool any_ = false;

  void blame(const test_case& c, const std::string& what) {
    if (wrong_.empty()) wrong_ = "op_spec<" + std::string(c.of->name) + ">::cases " + what;
  }
  static failure broken(const std::string& what) {
    return fail(errc::invalid_argument, what, "case stream", "make cases a function of the sink alone");
  }
  static std::uint64_t hash_of(const test_case& c) {
    stable_hash h;
    h.add(c.of->name).add(std::uint64_t(c.kind)).add(std::uint64_t(std::uint32_t(c.law))).add(c.seed).add(c.stream);
    for (const auto i : c.attr.i) h.add(std::uint64_t(i));
    for (const double f : c.attr.f) h.add(std::bit_cast<std::uint64_t>(f));
    for (const operand_recipe& x : c.in) {
      for (int k = 0; k < x.dims.rank; ++k) h.add(std::uint64_t(x.dims[k]));
      h.add(std::uint64_t(x.type)).add(x.from->name).add(std::bit_cast<std::uint64_t>(x.low)).add(std::bit_cast<std::uint64_t>(x.high));
    }
    return h.value();
  }
};

}  // namespace isotope::conform
