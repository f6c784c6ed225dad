#pragma once
#include "binary.hpp"
#include "scale.hpp"

namespace isotope {
namespace op {
/// Operands a (..., M, K), b (..., K, N) [, c (..., M, N)]. The last two axes may be in either memory order: NN, NT, TN and TT need no copy.
/// Where a is in f32 or bf16, b may be the transpose of a weight in blocks (core/quantized.hpp); products are as those with its elements in the format of a.
/// A fused epilogue (the node's body) works on the result, rounded to its format. Other operands of the epilogue follow those of the matmul.
struct matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr operand_layout layout = operand_layout::matrix;
  static constexpr bool accumulates = true;
  static constexpr body_role body = body_role::host;
  static constexpr int gemm_operands = 2;
  static constexpr bool runs_gemms = true;
  static constexpr int weight = 1;

  struct constants {
    format_number format{};     // of the result; none: the shape rule fills in the promoted format of the operands
    std::int64_t operands = 0;  // 2, or 3 with c, without those of the epilogue; the shape rule fills it in
    bool half_weight = false;   // a is f32 and b is f16, so kernels may need scratch for a in f16; the shape rule fills it in
    bool packed = false;  // b is a pre-packed copy: it has the dims and strides of the weight, and the memory order that the kernel chose
    double alpha = 1, beta = 0;    // factors on a b and c
    bool batch_invariant = false;  // kernels add up a row in the same order however many rows there are: plan_inference's batch_invariant
    bool a8 = false;               // a is rounded to 8 bits first, by quantized::round_activations; b is in blocks
    static constexpr constants of(const attributes& a) {
      return {format_number(a.i[0] - 1), a.i[1], a.i[2] != 0, a.i[3] != 0, a.f[0], a.f[1], a.i[4] != 0, a.i[5] != 0};
    }
    constexpr operator attributes() const {
      return {.i = {1 + format.number, operands, half_weight, packed, batch_invariant, a8}, .f = {alpha, beta}};
    }
  };
  static constexpr int host_operands(const attributes& a) { return int(constants::of(a).operands); }
  static constexpr void pack(attributes& a) {
    auto c = constants::of(a);
    c.packed = true;
    a = c;
  }
  static constexpr void set_batch_invariant(attributes& a) {
    auto c = constants::of(a);
    c.batch_invariant = true;
    a = c;
  }
  static constexpr void set_a8(attributes& a) {
    auto c = constants::of(a);
    c.a8 = true;
    a = c;
  }
  static constexpr bool is_a8(const attributes& a) { return constants::of(a).a8; }
  /// The format that the elements of a weight in blocks are rounded to beside activations of format t.
  static constexpr dtype element_type(dtype t) { return t == dtype::bf16 ? dtype::bf16 : dtype::f32; }
  /// 2 M N K for each matrix of a batch.
  static constexpr std::int64_t flops(const step_shapes& s) { return 2 * s.out[0].count() * s.in[0][-1]; }

  static constexpr void infer(shape_rule& r) {
    const shape &a = r.dims(0), &b = r.dims(1);
    dtype t{};
    if (!r.require(a.rank >= 2 && b.rank >= 2, "operands need two axes") ||
        !r.require(a.axis(-1) == b.axis(-2), "inner dimensions differ") ||
        !r.require(promote(r.type(0), in_blocks(r.type(1)) ? element_type(r.type(0)) : r.type(1), t) && is_floating(t),
                   "operands have different formats; cast one"))
      return;
    shape batch_a, batch_b;
    for (int i = 0; i + 2 < a.rank; ++i) batch_a.push(a.axis(i));
    for (int i = 0; i + 2 < b.rank; ++i) batch_b.push(b.axis(i));
    const auto batch = broadcast(batch_a, batch_b);
    if (!r.require(batch.ok, "batch dimensions do not broadcast")) return;
    shape y = batch.s;
    y.push(a.axis(-2));
    y.push(b.axis(-1));
    if (r.inputs() == 3 && !r.require(r.dims(2) == y, "c has another shape than the product")) return;
    auto c = constants::of(r.attr);
    if (!r.require(!c.a8 || ((c.packed || in_blocks(r.type(1))) && (r.type(0) == dtype::f32 || r.type(0) == dtype::bf16)),
                   "activations are rounded to 8 bits only where they are in f32 or bf16 and b is in q8_0 or q4_0"))
      return;
    if (!c.format.given()) c.format = t;
    c.operands = r.inputs();
    c.half_weight = r.type(0) == dtype::f32 && r.type(1) == dtype::f16;
    r.attr = c;
    t = r.format(c.format);
    if (r.require(is_floating(t), "the product needs a floating-point format")) r.yield(y, t);
  }

  /// Operands that are divided along M or N give a result that is, too; along K, each device's product is a part of a pending sum.
  static constexpr void shard(sharding& s) {
    if (s.all_whole()) return;
    const int a = s.dims(0).rank, b = s.dims(1).rank, y = a > b ? a : b;
    const int in_a = s.divided(0) ? s.along(0).axis - a : 0, in_b = s.divided(1) ? s.along(1).axis - b : 0;  // from the end; 0: whole
    if (!s.require(s.inputs() == 2, "a product with an addend is divided")) return;
    if (in_a == -1 && in_b == -2 && s.along(0).same_pieces(s.along(1))) return s.yield(0, distribution::partial());
    if (in_a == -2 && in_b == 0) return s.yield_divided(0, s.along(0).moved_to(y - 2));
    if (in_a == 0 && in_b == -1) return s.yield_divided(0, s.along(1).moved_to(y - 1));
    const bool batches =
        in_a < -2 && (in_b == in_a ? s.along(0).same_pieces(s.along(1)) : in_b == 0 && (b < -in_a || s.dims(1)[b + in_a] == 1));
    if (batches) return s.yield_divided(0, s.along(0).moved_to(y + in_a));
    s.require(false, "the inner axis of one operand is divided otherwise than that of the other");
  }

  static constexpr tensor<tape> gemm(tensor<tape> a, tensor<tape> b, dtype t, double alpha) {
    return apply<matmul>(place::current(), constants{.format = t, .alpha = alpha}, a, b);
  }
  static constexpr bool column_major(tensor<tape> x) {
    const value& v = x.machine->describe(x.id);
    return v.strides[std::size_t(v.dims.rank - 1)] != 1 && v.strides[std::size_t(v.dims.rank - 2)] == 1;
  }
  /// da = alpha dy b^T, db = alpha a^T dy, each in its operand's memory order. Gradients are summed over broadcast batches; for a single matrix b, by
  /// one matmul over all rows.
  static constexpr void gradient(pullback& g) {
    auto a = g.x(0), b = g.x(1), dy = g.dy();
    const auto c = constants::of(g.attr);
    const double alpha = c.alpha;
    if (g.wants(2)) g.give(2, isotope::scale(dy, c.beta));
    if (g.wants(0)) {
      const bool flip = column_major(a) && a.rank() == 2 && b.rank() == 2;
      auto da = flip ? isotope::transpose(gemm(b, isotope::transpose(dy), g.grad_type(0), alpha))
                     : gemm(dy, isotope::transpose(b), g.grad_type(0), alpha);
      g.give(0, sum_to(da, a.dims(), g.grad_type(0)));
    }
    if (g.wants(1)) {
      const bool flip = column_major(b);
      if (b.rank() == 2 && a.rank() > 2) {
        a = isotope::reshape(a, {a.dims().rows(), a.cols()});
        dy = isotope::reshape(dy, {dy.dims().rows(), dy.cols()});
      }
      auto db = flip ? isotope::transpose(gemm(isotope::transpose(dy), a, g.grad_type(1), alpha))
                     : gemm(isotope::transpose(a), dy, g.grad_type(1), alpha);
      g.give(1, sum_to(db, b.dims(), g.grad_type(1)));
    }
  }
};
}  // namespace op

/// y = alpha a b: y[..., m, n] = alpha sum_k a[..., m, k] b[..., k, n], summed in f32 (f64 for f64).
///
/// @param a  (..., M, K)
/// @param b  (..., K, N)  leading axes broadcast; `matmul(x, transpose(w))` reads w (N, K) without a copy
/// @return   (..., M, N)
/// @error    inner dimensions differ; batches do not broadcast; fewer than two axes
/// K = 0 gives zeros.
template <Machine M> constexpr tensor<M> matmul(tensor<M> a, tensor<M> b, double alpha = 1, place at = place::current()) {
  return apply<op::matmul>(at, op::matmul::constants{.alpha = alpha}, a, b);
}
/// y = alpha a b + beta c, c (..., M, N); beta = 0 ignores NaN in c.
template <Machine M>
constexpr tensor<M> matmul(tensor<M> a, tensor<M> b, tensor<M> c, double alpha, double beta, place at = place::current()) {
  return apply<op::matmul>(at, op::matmul::constants{.alpha = alpha, .beta = beta}, a, b, c);
}
}  // namespace isotope
