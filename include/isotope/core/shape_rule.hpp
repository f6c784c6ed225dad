#pragma once
/// The interface between the recorder and an op's shape rule.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "trace.hpp"

namespace isotope {

/// For each axis, the axis of another tensor, or -1.
using axis_map = std::array<std::int8_t, max_rank>;
inline constexpr axis_map own_axes{0, 1, 2, 3, 4, 5};

/// The argument of an op's shape rule. It provides the inputs' shapes and formats and the attributes, and takes the outputs by `yield` or an error.
class shape_rule {
 public:
  struct output {
    shape dims;
    dtype type{};
    bool view = false;
    std::int64_t offset = 0;  // of a view, in elements of the input
    extents strides{};
    std::int64_t first = 0;  // of a view along axes of the input: where it starts
  };
  /// How views look at the input: with strides of their own, along its axes, or as at another dense tensor of its elements.
  enum class viewing : std::uint8_t { strides, axes, dense };
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
    message m;
    if (f.number < 0 || f.number >= dtype_count) fail(m << "no format has the number " << f.number);
    else if (in_blocks(f.type())) fail(m << name_of(f.type()) << " is a format of weights, not of results");
    else return f.type();
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
  /// An output that looks at the bytes of input 0. Axis k runs along axis from[k] of the input, or repeats its elements where that is -1. It starts at
  /// element `first` of axis `along` of the input; all outputs of an op share `from` and `along`.
  constexpr void yield_view(const shape& s, const axis_map& from, std::int64_t first = 0, int along = 0) {
    const extents& strides = in(0).strides;
    extents r{};
    for (int k = 0; k < s.rank; ++k) r[std::size_t(k)] = from[std::size_t(k)] < 0 ? 0 : strides[std::size_t(from[std::size_t(k)])];
    yield_view(s, first * strides[std::size_t(along)], r);
    out_[std::size_t(outs_ - 1)].first = first;
    how_ = viewing::axes;
    from_ = from;
    along_ = along;
  }
  /// An output that looks at the bytes of input 0, which is dense, as at a tensor of another shape.
  constexpr void yield_reshaped(const shape& s) {
    yield_view(s, 0, dense_strides(s));
    how_ = viewing::dense;
  }
  /// Fails if the op gives strides of its own to a view with late sizes.
  constexpr void check_views() {
    for (int k = 0; k < outs_; ++k)
      require(!out(k).view || how_ != viewing::strides || !(out(k).dims.has_scalar() || dims(0).has_scalar()),
              "a view with strides of its own has constant sizes; say along which axes it runs");
  }
  /// The strides and the offset of view k of an input whose layout is x.
  constexpr late_layout late_view(int k, const late_layout& x) const {
    const output& o = out(k);
    if (how_ == viewing::dense) return late_dense(o.dims);
    late_layout r;
    if (how_ == viewing::strides) return r;
    for (int i = 0; i < o.dims.rank; ++i)
      if (const auto from = from_[std::size_t(i)]; from >= 0) r.strides[std::size_t(i)] = x.strides[std::size_t(from)];
    const late_number step = x.strides[std::size_t(along_)];
    r.move({o.first * step.factor, step.powers});
    return r;
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
  viewing how_ = viewing::strides;
  axis_map from_{};
  int along_ = 0;
  message error_;
};

}  // namespace isotope
