#pragma once
#include "../core/square_root.hpp"
#include "../core/tape.hpp"
#include "packed_rows.hpp"

namespace isotope {
namespace op {
/// Operands: q (N, H D), k (N, H D), v (N, H D), starts (B + 1) i32.
struct attention_packed {
  struct constants {
    std::int64_t heads = 0;  // H
    bool causal = false;
    double scale = 0;  // of the scores; 0: 1 / sqrt(head size), which the shape rule fills in
    static constexpr constants of(const attributes& a) { return {a.i[0], a.i[1] != 0, a.f[0]}; }
    constexpr operator attributes() const { return {.i = {heads, causal}, .f = {scale}}; }
  };
  static constexpr std::string_view name = "attention_packed";
  static constexpr operand_layout layout = operand_layout::rows;
  static constexpr bool runs_gemms = true;
  /// q k^T and p v, if all sequences have one length.
  static constexpr std::int64_t flops(const step_shapes& s) {
    const auto c = s.constants<attention_packed>();
    const std::int64_t sequences = s.in[3][0] > 1 ? s.in[3][0] - 1 : 1, pairs = 4 * s.in[0].count() * (s.in[0][0] / sequences);
    return c.causal ? pairs / 2 : pairs;
  }
  static constexpr void infer(shape_rule& r) {
    auto c = constants::of(r.attr);
    const shape& q = r.dims(0);
    if (!r.require(q.rank == 2 && r.dims(1) == q && r.dims(2) == q, "queries, keys and values must be [N,heads x head size]") ||
        !packed_rows::check(r, 3))
      return;
    message m;
    if (c.heads <= 0 || c.heads > max_elements || q[1] == 0 || q[1] % c.heads != 0)
      return r.fail(m << "width of " << q << " is not a positive multiple of " << c.heads << " heads");
    if (!r.require(!q.late(1), "the width has a late size: heads need a constant one") ||
        !r.require(r.type(1) == r.type(0) && r.type(2) == r.type(0) && is_floating(r.type(0)),
                   "queries, keys and values must have one floating-point format"))
      return;
    const std::int64_t head = q[1] / c.heads;
    if (c.scale == 0) c.scale = 1.0 / square_root(double(head));
    r.attr = c;
    r.yield(q, r.type(0));
  }
};
}  // namespace op

struct attention_packed_options {
  bool causal = false;  // a query does not see the rows of its sequence that follow it
  double scale = 0;     // 0: 1 / sqrt(head size)
};

/// y[n] = softmax(scale q[n] k^T) v for each head, with the keys and values of the rows of n's own sequence: attention of sequences of several lengths whose
/// rows are packed without padding. The order of all sums depends on the length and on the place in the sequence alone, so a sequence has the same bits among
/// any others.
///
/// @param q, k, v  (N, H D)
/// @param starts   (B + 1) i32  ascending numbers, taken as in [0, N]; sequence b is rows starts[b] to starts[b + 1] - 1, and may be empty
/// @param heads    H
/// @return         (N, H D)     0 in rows before the first sequence and after the last one; not differentiable: training attends to whole sequences with a mask
/// @error          a width that is not a multiple of the heads, shapes or formats that differ
/// Source: as attention; Zhai et al. 2022, arXiv:2210.03052 (sequences without padding).
template <Machine M>
constexpr tensor<M> attention_packed(tensor<M> q, tensor<M> k, tensor<M> v, tensor<M> starts, int heads, attention_packed_options o = {},
                                     place at = place::current()) {
  return apply<op::attention_packed>(at, op::attention_packed::constants{.heads = heads, .causal = o.causal, .scale = o.scale}, q, k, v,
                                     starts);
}
}  // namespace isotope
