#pragma once
/// What the planner knows of an op: its name, shape rule and gradient rule. Nodes point at one of these, so an op
/// defined outside the library is as good as one inside.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "precision.hpp"
#include "shape.hpp"

namespace isotope {

inline constexpr int max_inputs = 8;
inline constexpr int max_outputs = 6;

/// An op's constants. Each op documents which entries it reads.
struct attributes {
  std::array<std::int64_t, 8> i{};
  std::array<double, 3> f{};
  friend constexpr bool operator==(const attributes&, const attributes&) = default;
};

class shape_rule;     // core/shape_rule.hpp: what a shape rule sees
class decomposition;  // core/decomposition.hpp: what a lowering to other ops sees
class pullback;       // core/pullback.hpp: what a gradient rule sees

enum class op_kind : std::uint8_t {
  kernel,       // one launch
  elementwise,  // one instruction of a fused body
  view,         // no launch: the output looks at the input's bytes
};
/// The memory order that an op's kernels read; the trace inserts a copy where an operand differs.
enum class operand_layout : std::uint8_t {
  any,     // any strides
  rows,    // the last axis is contiguous
  matrix,  // one of the last two axes is contiguous
  dense,   // row-major without gaps
};

struct op_info {
  std::string_view name;
  op_kind kind = op_kind::kernel;
  operand_layout layout = operand_layout::dense;
  bool accumulates = false;  // kernels honour `accumulate`: they add to the output instead of overwriting it
  bool (*random)(const attributes&) =
      nullptr;             // where it draws random numbers: such nodes are numbered, each number a stream; none: nowhere
  bool moves = false;      // its output holds elements of its first input as they are: a parameter's gradient passes in its own format
  std::uint8_t inout = 0;  // bit k: output k is input k, updated in place
  void (*infer)(shape_rule&) = nullptr;
  void (*gradient)(pullback&) = nullptr;        // none: not differentiable
  void (*decompose)(decomposition&) = nullptr;  // the same in terms of simpler ops, for backends without a kernel
  constexpr bool draws(const attributes& a) const { return random != nullptr && random(a); }
};

/// An op is a tag with a name and a shape rule; the rest has defaults.
template <class Op>
concept HasOpName = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};
template <class Op>
concept HasShapeRule = requires(shape_rule& r) { Op::infer(r); };
template <class Op>
concept IsOp = HasOpName<Op> && HasShapeRule<Op>;
template <class Op>
concept HasGradientRule = requires(pullback& g) { Op::gradient(g); };

template <class Op>
concept HasDecomposition = requires(decomposition& d) { Op::decompose(d); };

template <IsOp Op> constexpr op_info describe() {
  op_info r{.name = Op::name, .infer = &Op::infer};
  if constexpr (requires { Op::kind; }) r.kind = Op::kind;
  r.layout = r.kind == op_kind::kernel ? operand_layout::dense : operand_layout::any;
  if constexpr (requires { Op::layout; }) r.layout = Op::layout;
  if constexpr (requires { Op::accumulates; }) r.accumulates = Op::accumulates;
  if constexpr (requires { &Op::random; }) r.random = &Op::random;
  if constexpr (requires { Op::moves; }) r.moves = Op::moves;
  if constexpr (requires { Op::inout; }) r.inout = Op::inout;
  if constexpr (HasGradientRule<Op>) r.gradient = &Op::gradient;
  if constexpr (HasDecomposition<Op>) r.decompose = &Op::decompose;
  return r;
}
/// The one address by which graphs, plans and kernel tables name an op.
template <IsOp Op> inline constexpr op_info info = describe<Op>();

}  // namespace isotope
