#pragma once
/// How the kernels of a step learn which of their variants was chosen before. Any backend whose kernels have variants may record through this.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../core/op_info.hpp"
#include "../../core/trace.hpp"
#include "../../plan/choose_kernel.hpp"

namespace isotope {

/// Remembers choices among variants, by the signature of a step.
class known_choices {
 public:
  virtual ~known_choices() = default;
  /// The name of the variant; empty: nothing is known.
  virtual std::string find(const std::string& signature) const = 0;
};
/// Remembers all that others do, and one choice otherwise.
class one_more_choice final : public known_choices {
 public:
  /// What is passed has to outlive this.
  one_more_choice(const known_choices& others, const std::string& signature, const std::string& variant)
      : others_(others), signature_(signature), variant_(variant) {}
  std::string find(const std::string& signature) const override { return signature == signature_ ? variant_ : others_.find(signature); }

 private:
  const known_choices& others_;
  const std::string &signature_, &variant_;
};

namespace known_choices_detail {
inline void mix(std::uint64_t& h, std::uint64_t word) {
  h = (h ^ word) * 0x100000001b3u;
  h ^= h >> 29;
}
inline std::string hex(std::uint64_t x) {
  std::string s;
  for (int k = 60; k >= 0; k -= 4)
    if (const auto digit = (x >> k) & 15; digit != 0 || !s.empty() || k == 0) s += "0123456789abcdef"[digit];
  return s;
}
/// A tensor as kernels see it: format, shape, strides where they are not dense, and the alignment of its address up to 16 bytes.
template <class View> std::string text_of(const View& v) {
  std::string s(name_of(v.type));
  std::int64_t dense = 1;
  bool strided = false;
  for (int k = v.dims.rank - 1; k >= 0; --k) {
    strided = strided || (v.dims[k] != 1 && v.strides[std::size_t(k)] != dense);
    dense *= v.dims[k];
  }
  for (int k = 0; k < v.dims.rank; ++k) s += (k == 0 ? "[" : ",") + std::to_string(v.dims[k]);
  if (v.dims.rank > 0) s += ']';
  for (int k = 0; strided && k < v.dims.rank; ++k) s += (k == 0 ? "/" : ",") + std::to_string(v.strides[std::size_t(k)]);
  if (const auto aligned = v.at & 15; aligned != 0) s += '@' + std::to_string(aligned & (~aligned + 1));
  return s;
}
}  // namespace known_choices_detail

/// What the time of a step's variants depends on, in one line without tabs: op, kernel set, operands, constants and fused body. Where a tensor lies does not
/// matter, but for its alignment. Empty for all but products, whose choices are not remembered: a product's constants say whether its rows are to have the same
/// bits in every batch, and only variants that obey are considered; other ops have no such constant, so their choice must follow from their sizes alone.
/// @param l  a launch of any backend
template <class Launch> std::string signature_of(const op_info& op, std::string_view set, const Launch& l) {
  using namespace known_choices_detail;
  if (op.gemm_operands == 0) return {};
  std::string s = std::string(op.name) + ' ' + std::string(set);
  for (const auto& v : l.in) s += ' ' + text_of(v);
  s += " >";
  for (const auto& v : l.out) s += ' ' + text_of(v);
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const auto x : l.attr->i) mix(h, std::uint64_t(x));
  for (const auto x : l.attr->f) mix(h, std::bit_cast<std::uint64_t>(x));
  for (const auto& m : l.body) {
    for (const char c : m.op->name) mix(h, std::uint64_t(std::uint8_t(c)));
    for (const auto a : m.arg) mix(h, std::uint64_t(std::uint8_t(a)));
    mix(h, std::uint64_t(std::uint8_t(m.store)));
    mix(h, std::uint64_t(m.type));
    mix(h, std::bit_cast<std::uint64_t>(m.scalar));
  }
  mix(h, l.accumulate);
  mix(h, std::uint64_t(std::int64_t(l.summed)));
  mix(h, std::uint64_t(l.scratch_bytes));
  return s + ' ' + hex(h);
}

/// The choices of the step that is recorded: one, or several where its kernel has several lists of variants.
class step_choices {
 public:
  /// Asks for a variant in every step, as in kernel_choices.
  void want(std::string_view variant) { now_.wanted = variant; }
  /// Takes choices from there; null: the fastest by estimate.
  void know(const known_choices* all) { known_ = all; }
  void begin_step() { made_ = 0; }
  /// For choose_kernel. `signature`: of the step; empty: its choice is not remembered.
  template <class Signature> kernel_choices* next(const Signature& signature) {
    now_.all.clear();
    now_.remembered.clear();
    signature_.clear();
    if (known_ == nullptr || !now_.wanted.empty()) return &now_;
    signature_ = signature();
    if (signature_.empty()) return &now_;
    if (++made_ > 1) signature_ += ", choice " + std::to_string(made_);
    now_.remembered = known_->find(signature_);
    return &now_;
  }
  /// What choose_kernel considered, and the signature of the choice; empty: nothing is to be remembered.
  std::vector<considered_variant> considered() { return std::exchange(now_.all, {}); }
  std::string signature() { return std::exchange(signature_, {}); }

 private:
  kernel_choices now_;
  const known_choices* known_ = nullptr;
  std::string signature_;
  int made_ = 0;
};

}  // namespace isotope
