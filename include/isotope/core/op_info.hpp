#pragma once
/// What is known about an op: facts, which plans and kernels read (`op_info`), and rules, by which the planner traces and rewrites it (`op_rules`). Nodes and
/// steps point to these, so ops defined outside the library work like those inside it.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "mesh.hpp"
#include "precision.hpp"
#include "shape.hpp"

namespace isotope {

inline constexpr int max_inputs = 8;
inline constexpr int max_outputs = 6;

/// The constants of any op, in the form that graphs, plans and files store. An op with constants names them in a struct `constants` with
/// `static constexpr constants of(const attributes&)` and the inverse conversion; only this struct knows the meaning of each entry.
struct attributes {
  std::array<std::int64_t, 8> i{};
  std::array<double, 3> f{};
  /// The only constant that an element-wise op may have; a fused body stores nothing else of its attributes.
  constexpr double scalar() const { return f[0]; }
  static constexpr attributes of_scalar(double k) { return {.f = {k}}; }
  friend constexpr bool operator==(const attributes&, const attributes&) = default;
};
/// A number format as a constant of an op. The number may come from a file and be invalid, so shape rules convert it by shape_rule::format.
struct format_number {
  std::int64_t number = -1;  // of a dtype; -1: none is given, and the shape rule chooses one
  constexpr format_number() = default;
  constexpr format_number(dtype t) : number(std::int64_t(t)) {}
  constexpr explicit format_number(std::int64_t n) : number(n) {}
  constexpr bool given() const { return number != -1; }
  constexpr dtype type() const { return dtype(number); }
  friend constexpr bool operator==(const format_number&, const format_number&) = default;
};

class shape_rule;     // core/shape_rule.hpp: the argument of `infer`
class decomposition;  // core/decomposition.hpp: the argument of `decompose`
class pullback;       // core/pullback.hpp: the argument of `gradient`
class sharding;       // core/sharding.hpp: the argument of `shard`
struct step_shapes;   // core/target.hpp: the shapes of one step

enum class op_kind : std::uint8_t {
  kernel,       // one launch
  elementwise,  // one instruction of a fused body
  view,         // no launch: the output shares the input's memory
};
/// The memory order that an op's kernels read; the trace inserts a copy where an operand differs.
enum class operand_layout : std::uint8_t {
  any,     // any strides
  rows,    // the last axis is contiguous
  matrix,  // one of the last two axes is contiguous
  dense,   // row-major without gaps
};
/// How the steps of an op use a fused element-wise body.
enum class body_role : std::uint8_t {
  none,   // they have no body
  host,   // kernels may apply a body to their result as an epilogue
  alone,  // the step consists of the body only
};
/// The neutral element of an element-wise op of two operands: with it as one operand, the result is the other operand, bit for bit. An op of one operand and
/// a constant counts the constant as its right operand.
struct neutral_operand {
  double number = 0;
  bool left = false, right = false;
};

/// What plans, kernels and reports know about an op. An op declares its own values under the same names. Graphs, plans and kernel tables identify an op by the
/// address of its `info`.
struct op_info {
  std::string_view name;
  op_kind kind = op_kind::kernel;
  operand_layout layout = operand_layout::dense;
  bool accumulates = false;  // kernels support `accumulate`: they add to the output instead of overwriting it
  /// Whether a node with these attributes draws random numbers. Such nodes are numbered, and the number selects the random stream; null: never.
  bool (*random)(const attributes&) = nullptr;
  bool moves = false;      // the op only moves elements of its first input, so a parameter's gradient keeps accumulation precision
  std::uint8_t inout = 0;  // bit k: output k is input k, updated in place
  body_role body = body_role::none;
  int (*host_operands)(const attributes&) = nullptr;  // how many operands come before those of a fused body
  int gemm_operands = 0;                              // the result is one matmul of this many first operands; 0: it is none
  bool runs_gemms = false;                            // most of its time goes into matmuls, so recomputation policies may keep its results
  bool cheap = false;  // its first result takes one pass over operands that its gradient reads, too: recompute::cheap computes it again
  bool counts_columns = false;  // a constant counts the columns of operand 0 that it reads: longer rows change no result
  int weight = -1;              // the operand that may be a weight stored in another format than the other operands; -1: none
  bool (*is_a8)(const attributes&) = nullptr;  // whether a step rounds its activations to 8 bits; null: kernels of the op do not
  bool constant = false;                       // every element of the result is attributes::scalar
  neutral_operand neutral{};
  std::int64_t (*flops)(const step_shapes&) = nullptr;  // floating-point operations of the formula; null: one per element
  bool adds_up = false;  // if its operands are sums that are pending (distribution::partial), so is its result
  /// Gives constants that depend on the rank their values, when a plan is loaded on that rank; null: there are none.
  void (*localise)(attributes&, const mesh_position&) = nullptr;
  bool collective = false;  // its kernel exchanges numbers with other devices
  constexpr bool draws(const attributes& a) const { return random != nullptr && random(a); }
};

/// How the planner traces, differentiates and rewrites an op. Only traces point here: a plan that is compiled into a program points to `op_info`, so that the
/// program contains none of these functions and the compiler makes no code of them.
struct op_rules {
  const op_info* info = nullptr;
  void (*infer)(shape_rule&) = nullptr;
  void (*gradient)(pullback&) = nullptr;        // null: not differentiable
  void (*decompose)(decomposition&) = nullptr;  // expresses the op by simpler ops, for backends without a kernel; null: not possible
  /// Says how the op works on operands that are divided between devices; null: element-wise ops take operands that are divided alike, others whole ones only.
  void (*shard)(sharding&) = nullptr;
  void (*pack)(attributes&) = nullptr;  // marks operand op_info::weight as a pre-packed copy; null: no kernel of the op reads one
  /// Marks a node whose rows are to have the same bits for any number of rows; null: kernels of the op add up rows in one way anyhow.
  void (*set_batch_invariant)(attributes&) = nullptr;
  void (*set_a8)(attributes&) = nullptr;  // marks a node whose activations are rounded to 8 bits; null: kernels of the op do not
  /// Computes an element-wise op of two numbers, or of one and its constant, for constant folding. Returns false if the result is undefined.
  bool (*calculate)(double x, double y, double& result) = nullptr;
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

namespace op_detail {
template <HasOpName Op> constexpr op_info info_of() {
  op_info r{.name = Op::name};
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
  if constexpr (requires { Op::cheap; }) r.cheap = Op::cheap;
  if constexpr (requires { Op::counts_columns; }) r.counts_columns = Op::counts_columns;
  if constexpr (requires { Op::weight; }) r.weight = Op::weight;
  if constexpr (requires { &Op::is_a8; }) r.is_a8 = &Op::is_a8;
  if constexpr (requires { Op::constant; }) r.constant = Op::constant;
  if constexpr (requires { Op::neutral; }) r.neutral = Op::neutral;
  if constexpr (requires { &Op::flops; }) r.flops = &Op::flops;
  if constexpr (requires { Op::adds_up; }) r.adds_up = Op::adds_up;
  if constexpr (requires { &Op::localise; }) r.localise = &Op::localise;
  if constexpr (requires { Op::collective; }) r.collective = Op::collective;
  return r;
}
template <IsOp Op> constexpr op_rules rules_of(const op_info& info) {
  op_rules r{.info = &info, .infer = &Op::infer};
  if constexpr (HasGradientRule<Op>) r.gradient = &Op::gradient;
  if constexpr (HasDecomposition<Op>) r.decompose = &Op::decompose;
  if constexpr (requires { &Op::shard; }) r.shard = &Op::shard;
  if constexpr (requires { &Op::pack; }) r.pack = &Op::pack;
  if constexpr (requires { &Op::set_batch_invariant; }) r.set_batch_invariant = &Op::set_batch_invariant;
  if constexpr (requires { &Op::set_a8; }) r.set_a8 = &Op::set_a8;
  if constexpr (requires { &Op::calculate; }) r.calculate = &Op::calculate;
  return r;
}
}  // namespace op_detail

template <IsOp Op> inline constexpr op_info info = op_detail::info_of<Op>();
template <IsOp Op> inline constexpr op_rules rules = op_detail::rules_of<Op>(info<Op>);

}  // namespace isotope
