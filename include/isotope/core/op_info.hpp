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

/// An op's constants as graphs, plans and files carry them, whatever op it is. An op that has some names them in a struct `constants` with
/// `static constexpr constants of(const attributes&)` and a conversion back, its inverse; nobody else knows which entry is which.
struct attributes {
  std::array<std::int64_t, 8> i{};
  std::array<double, 3> f{};
  /// The one constant that an element-wise op may have: all that a fused body keeps of its attributes.
  constexpr double scalar() const { return f[0]; }
  static constexpr attributes of_scalar(double k) { return {.f = {k}}; }
  friend constexpr bool operator==(const attributes&, const attributes&) = default;
};
/// A format as a constant of an op. It may come from a file and be no format at all: shape rules ask shape_rule::format.
struct format_number {
  std::int64_t number = -1;  // of a dtype; -1: none is given, and the shape rule chooses one
  constexpr format_number() = default;
  constexpr format_number(dtype t) : number(std::int64_t(t)) {}
  constexpr explicit format_number(std::int64_t n) : number(n) {}
  constexpr bool given() const { return number != -1; }
  constexpr dtype type() const { return dtype(number); }
  friend constexpr bool operator==(const format_number&, const format_number&) = default;
};

class shape_rule;     // core/shape_rule.hpp: what a shape rule sees
class decomposition;  // core/decomposition.hpp: what a lowering to other ops sees
class pullback;       // core/pullback.hpp: what a gradient rule sees
struct step_shapes;   // core/target.hpp: the shapes of one step

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
/// What a fused element-wise body is to a step.
enum class body_role : std::uint8_t {
  none,   // the op takes none
  host,   // its kernels may take one as the epilogue of the result
  alone,  // the step is a body and nothing else
};
/// The number that, as an operand of an element-wise op of two, leaves the other operand as it is, bit for bit. Of an op of one operand and its own
/// constant, that constant is the right operand.
struct neutral_operand {
  double number = 0;
  bool left = false, right = false;
};

/// All that the planner knows of an op: what the op declares of itself, under the same names.
struct op_info {
  std::string_view name;
  op_kind kind = op_kind::kernel;
  operand_layout layout = operand_layout::dense;
  bool accumulates = false;  // kernels honour `accumulate`: they add to the output instead of overwriting it
  bool (*random)(const attributes&) =
      nullptr;             // where it draws random numbers: such nodes are numbered, each number a stream; none: nowhere
  bool moves = false;      // its output holds elements of its first input as they are: a parameter's gradient passes in its own format
  std::uint8_t inout = 0;  // bit k: output k is input k, updated in place
  body_role body = body_role::none;
  int (*host_operands)(const attributes&) = nullptr;  // of a step with a body: how many operands come before those of the body
  int gemm_operands = 0;                              // how many of its first operands are those of one gemm, which makes its result
  bool runs_gemms = false;                            // it spends its time in gemms: a policy of recomputation may keep its results
  int weight = -1;                      // the operand that may be a weight stored in another format than the other operands; -1: none
  void (*pack)(attributes&) = nullptr;  // makes operand `weight` a packed copy of a weight; none: no kernel of the op reads one
  bool constant = false;                // each element of its result is attributes::scalar
  neutral_operand neutral{};
  /// What an element-wise op makes of two numbers, or of one and its constant. False where that is undefined.
  bool (*calculate)(double x, double y, double& result) = nullptr;
  std::int64_t (*flops)(const step_shapes&) = nullptr;  // floating-point operations of its formula; none: one for each element
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
  if constexpr (requires { Op::body; }) r.body = Op::body;
  if constexpr (requires { &Op::host_operands; }) r.host_operands = &Op::host_operands;
  if constexpr (requires { Op::gemm_operands; }) r.gemm_operands = Op::gemm_operands;
  if constexpr (requires { Op::runs_gemms; }) r.runs_gemms = Op::runs_gemms;
  if constexpr (requires { Op::weight; }) r.weight = Op::weight;
  if constexpr (requires { &Op::pack; }) r.pack = &Op::pack;
  if constexpr (requires { Op::constant; }) r.constant = Op::constant;
  if constexpr (requires { Op::neutral; }) r.neutral = Op::neutral;
  if constexpr (requires { &Op::calculate; }) r.calculate = &Op::calculate;
  if constexpr (requires { &Op::flops; }) r.flops = &Op::flops;
  if constexpr (HasGradientRule<Op>) r.gradient = &Op::gradient;
  if constexpr (HasDecomposition<Op>) r.decompose = &Op::decompose;
  return r;
}
/// The one address by which graphs, plans and kernel tables name an op.
template <IsOp Op> inline constexpr op_info info = describe<Op>();

}  // namespace isotope
