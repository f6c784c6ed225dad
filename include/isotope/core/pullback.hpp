#pragma once
/// The interface between differentiation and an op's gradient rule.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "sharding.hpp"
#include "tape.hpp"

namespace isotope {

/// The argument of an op's gradient rule. It provides the node's inputs x, its outputs y and their gradients dy, and takes the gradients of the inputs by
/// `give`.
class pullback {
 public:
  using T = tensor<tape>;

  constexpr pullback(tape& t, const node& n) : attr(n.attr), ordinal(n.ordinal), t_(t), n_(n) {}

  attributes attr;
  std::uint32_t ordinal;

  constexpr tape& machine() const { return t_; }
  constexpr int inputs() const { return n_.inputs(); }
  constexpr T x(int k) const { return {&t_, n_.in[std::size_t(k)]}; }
  constexpr T y(int k = 0) const { return {&t_, n_.out[std::size_t(k)]}; }
  constexpr T dy(int k = 0) const { return {&t_, dy_[std::size_t(k)]}; }
  constexpr bool has_dy(int k) const { return dy_[std::size_t(k)] >= 0; }
  /// Whether the gradient of input k is needed; rules skip the work if it is not.
  constexpr bool wants(int k) const { return k < inputs() && t_.describe(n_.in[std::size_t(k)]).wants_gradient; }
  /// The format of input k's gradient: accumulation format for parameters and moved elements of them (op_info::moves), the input's own for activations.
  constexpr dtype grad_type(int k) const {
    const auto v = n_.in[std::size_t(k)];
    for (auto from = t_.g.root(v); from >= 0;) {
      const value& x = t_.describe(from);
      if (x.kind == value_kind::param) return accum_of(t_.program());
      if (x.producer < 0) break;
      const node& by = t_.g.nodes[std::size_t(x.producer)];
      from = by.op->moves ? t_.g.root(by.in[0]) : -1;
    }
    return t_.describe(v).type;
  }
  /// The gradient of input k collected so far, for ops that add to it in place; invalid if there is none yet.
  constexpr T collected(int k) const { return {&t_, collected_[std::size_t(k)]}; }

  /// Adds g to the gradient of input k.
  constexpr void give(int k, T g) { given_[std::size_t(k)] = g.id; }
  /// Replaces the gradient of input k by g, which includes `collected(k)` already.
  constexpr void replace(int k, T g) {
    given_[std::size_t(k)] = g.id;
    replaces_[std::size_t(k)] = true;
  }

  /// Applies `op`, whose first result is the gradient of input 0, and gives it. If a gradient of input 0 was collected before and the kernel takes an
  /// addend, that gradient becomes the op's last operand, which saves a separate addition. The bits are the same.
  constexpr applied give_first(const op_rules& op, std::initializer_list<std::int32_t> operands) {
    std::array<std::int32_t, max_inputs> in{};
    std::size_t n = 0;
    for (auto v : operands) in[n++] = v;
    summed_ = addend_ >= 0 && t_.addends && t_.takes_addend(*op.info);
    if (summed_) in[n++] = addend_;
    const auto r = t_.apply(op, {in.data(), n}, attr, place::current());
    if (wants(0)) give(0, {&t_, r.out[0]});
    return r;
  }

  // The rest is for differentiate.
  std::array<std::int32_t, max_outputs> dy_{-1, -1, -1, -1, -1, -1};
  std::array<std::int32_t, max_inputs> collected_{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<std::int32_t, max_inputs> given_{-1, -1, -1, -1, -1, -1, -1, -1};
  std::array<bool, max_inputs> replaces_{};
  std::int32_t addend_ = -1;  // the gradient of input 0 collected so far, if it has the input's shape and format and is dense
  bool summed_ = false;       // whether the given gradient of input 0 includes addend_

 private:
  tape& t_;
  node n_;
};

namespace op {
/// y[i] = x[i], dense. The recorder inserts this op where another op cannot read an operand's strides.
struct copy {
  static constexpr std::string_view name = "copy";
  static constexpr bool moves = true;
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr operand_layout layout = operand_layout::any;
  static constexpr void infer(shape_rule& r) { r.yield(r.dims(0), r.type(0)); }
  static constexpr void shard(sharding& s) {
    if (s.divided(0)) s.yield(0, s.at(0));
  }
  static constexpr void gradient(pullback& g) { g.give(0, g.dy()); }
};
}  // namespace op

constexpr std::int32_t tape::legal(operand_layout layout, std::int32_t v, place at) {
  const value& x = describe(v);
  const auto stride = [&](int i) { return x.dims[i] == 1 ? std::int64_t(1) : x.strides[std::size_t(i < 0 ? i + x.dims.rank : i)]; };
  bool fits = true;
  switch (layout) {
    case operand_layout::any: break;
    case operand_layout::rows: fits = x.dims.rank == 0 || stride(-1) == 1; break;
    case operand_layout::matrix: fits = x.dims.rank < 2 ? g.dense(v) : stride(-1) == 1 || stride(-2) == 1; break;
    case operand_layout::dense: fits = g.dense(v); break;
  }
  if (fits) return v;
  return record(rules<op::copy>, std::span<const std::int32_t>(&v, 1), {}, at, 0).out[0];
}

}  // namespace isotope
