#pragma once
/// The interface between the recorder and an op's shape rule.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "trace.hpp"

namespace isotope {

/// The argument of an op's shape rule. It provides the inputs' shapes and formats and the attributes, and takes the outputs by `yield` or an error.
class shape_rule {
 public:
  struct output {
    shape dims;
    dtype type{};
    bool view = false;
    std::int64_t offset = 0;  // of a view, in elements of the input
    extents strides{};
  };
  constexpr shape_rule(const trace& g, std::span<const std::int32_t> in, const attributes& a) : attr(a), g_(g), in_(in) {}

  attributes attr;  // a rule may fill in derived entries

  constexpr int inputs() const { return int(in_.size()); }
  constexpr const value& in(int k) const { return g_.values[std::size_t(in_[std::size_t(k)])]; }
  constexpr const shape& dims(int k) const { return in(k).dims; }
  constexpr dtype type(int k) const { return in(k).type; }
  constexpr dtype program() const { return g_.program; }
  constexpr dtype accum() const { return accum_of(g_.program); }

  /// The format that a constant names; fails if the number is invalid.
  constexpr dtype format(format_number f) {
    if (f.number >= 0 && f.number < dtype_count) return f.type();
    message m;
    fail(m << "no format has the number " << f.number);
    return {};
  }
  constexpr void yield(const shape& s, dtype t) {
    if (outs_ < max_outputs) {
      auto& o = out_[std::size_t(outs_++)];
      o.dims = s;
      o.type = t;
    }
  }
  /// Declares an output that is a view of input 0.
  constexpr void yield_view(const shape& s, std::int64_t offset, const extents& strides) {
    yield(s, type(0));
    auto& o = out_[std::size_t(outs_ - 1)];
    o.view = true;
    o.offset = offset;
    o.strides = strides;
  }
  /// Returns the condition. If it is false, fails with `what`, followed by the shapes of the inputs.
  constexpr bool require(bool condition, std::string_view what) {
    if (condition || failed()) return condition;
    error_ << what << ": ";
    for (int k = 0; k < inputs(); ++k) error_ << (k != 0 ? " vs " : "") << dims(k);
    return false;
  }
  constexpr void fail(const message& m) {
    if (!failed()) error_ = m;
  }
  constexpr bool failed() const { return !error_.empty(); }
  constexpr const message& error() const { return error_; }
  constexpr int outputs() const { return outs_; }
  constexpr const output& out(int k) const { return out_[std::size_t(k)]; }

 private:
  const trace& g_;
  std::span<const std::int32_t> in_;
  std::array<output, max_outputs> out_{};
  int outs_ = 0;
  message error_;
};

}  // namespace isotope
