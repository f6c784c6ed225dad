#pragma once
#include "../core/philox.hpp"
#include "../core/square_root.hpp"
#include "../core/tape.hpp"
#include "attention_range.hpp"
#include "copy.hpp"

namespace isotope {
namespace op {
/// Operands if packed: qkv (B, S, (H + 2 G) D), queries, keys and values side by side; otherwise q (B, S, H D), k (B, T, G D), v (B, T, G D).
/// With a mask, mask (B, T) follows. Outputs: y (B, S, H D) and lse (B, H, S) in accumulation format, the log of each softmax denominator.
/// The node's ordinal is the random stream of dropout, also in the gradient.
struct attention_shape {
  static constexpr operand_layout layout = operand_layout::rows;
  using constants = attention_constants;
  static constexpr int operands(const constants& c) { return (c.packed ? 1 : 3) + (c.masked ? 1 : 0); }
  static constexpr bool random(const attributes& a) { return constants::of(a).dropout > 0; }
  static constexpr void set_batch_invariant(attributes& a) {
    auto c = constants::of(a);
    c.batch_invariant = true;
    a = c;
  }
  /// Heads may be divided, queries, keys and values alike; where they do not divide, by units of a key-value head and its queries (axis_split::units). With dropout, the first batch on a rank is number data index x B of all.
  static constexpr void shard(sharding& s) {
    auto c = constants::of(s.attr);
    const int tensors = c.packed ? 1 : 3;
    if (c.dropout > 0 && s.replicas() * s.parts() > 1) c.all_heads = c.heads, c.first_head = s.dims(0)[0];  // B, until `localise`
    if (s.all_whole()) {
      s.attr = c;
      return;
    }
    message m;
    int some = 0;
    while (!s.divided(some)) ++some;
    const std::int64_t units = s.along(some).units == c.kv_heads ? c.kv_heads : 0, queries = c.heads / c.kv_heads;
    if (units == 0 && (c.heads % s.parts() != 0 || c.kv_heads % s.parts() != 0)) {
      m << c.heads << " heads and " << c.kv_heads << " key-value heads do not divide by tensor " << s.parts()
        << ": choose a divisor of both";
      s.require(false, m.view());
      return;
    }
    const std::int64_t D = s.dims(0)[2] / (c.packed ? c.heads + 2 * c.kv_heads : c.heads),
                       all[3] = {c.heads * D, c.kv_heads * D, c.kv_heads * D};
    for (int k = 0; k < tensors; ++k) {
      auto want = c.packed ? axis_split::in_groups(2, {all[0], all[1], all[2]}) : axis_split::whole(2, all[k]);
      if (!s.require(s.divided(k) && s.along(k) == want.in_units(units),
                     "queries, keys and values must be divided by heads, each a group of its own"))
        return;
    }
    if (!s.require(!c.masked || !s.divided(tensors), "the mask is divided")) return;
    c.kv_heads = (c.kv_heads + s.parts() - 1) / s.parts();
    c.heads = queries * c.kv_heads;
    s.attr = c;
  }
  /// In a plan, first_head holds B; it becomes the number of the first head on a rank.
  static constexpr void localise(attributes& a, const mesh_position& at) {
    auto c = constants::of(a);
    c.first_head = at.data * c.first_head * c.all_heads + (c.all_heads > c.heads ? at.tensor * c.heads : 0);
    a = c;
  }
  /// The number of pairs of a query and a key that it attends to, over all heads, times the head size.
  static constexpr std::int64_t gemm_macs(const step_shapes& s) {
    const auto n = attention_sizes::of(s);
    return n.B * n.H * n.D * attention_range(constants::of(*s.attr), n.S, n.T).pairs();
  }
  /// The random words of keys 4 k to 4 k + 3 of a query; row = (b H + h) S + s. Four keys share a call, and no counter depends on the number of keys.
  static constexpr std::array<std::uint32_t, 4> words(std::uint64_t seed, std::uint32_t row, std::uint32_t k, std::uint32_t step,
                                                      std::uint32_t stream) {
    return philox(seed, std::uint64_t(row) << 32 | k, step, stream);
  }
  /// A probability is dropped if its word is at most this: ceil(p 2^32) - 1, for 0 < p < 1.
  static constexpr std::uint32_t last_dropped(double p) {
    const double least = p * 0x1p32;
    const auto whole = std::uint64_t(least);
    return std::uint32_t(double(whole) < least ? whole : whole - 1);
  }
};
/// Operands of the forward op, then y, lse, dy; outputs dqkv, or dq, dk, dv. With P = exp(scale q k^T + mask - lse), and K = kept / (1 - p), or 1 without
/// dropout:
/// dv = (K P)^T dy,  dS = P (K (dy v^T) - rowsum(dy y)),  dq = scale dS k,  dk = scale dS^T q. The mask has no gradient.
struct attention_grad : attention_shape {
  static constexpr std::string_view name = "attention_grad";
  using gradient_of = struct attention;
  static constexpr std::int64_t flops(const step_shapes& s) { return 10 * gemm_macs(s); }  // recomputes q k^T, then dy v^T, dv, dq, dk
  static constexpr void infer(shape_rule& r) {
    for (int k = 0; k < (constants::of(r.attr).packed ? 1 : 3); ++k) r.yield(r.dims(k), r.type(k));
  }
  static constexpr void shard(sharding& s) {
    const auto c = constants::of(s.attr);
    attention_shape::shard(s);
    if (s.all_whole()) return;
    const int after = operands(c);
    if (!s.require(s.divided(after) && s.divided(after + 1) && s.divided(after + 2) && s.along(after + 2) == s.along(after),
                   "the result is divided otherwise"))
      return;
    for (int k = 0; k < (c.packed ? 1 : 3); ++k) s.yield(k, s.at(k));
  }
};
struct attention : attention_shape {
  static constexpr std::string_view name = "attention";
  static constexpr bool runs_gemms = true;
  static constexpr std::int64_t flops(const step_shapes& s) { return 4 * gemm_macs(s); }  // q k^T and p v
  static constexpr void infer(shape_rule& r) {
    auto c = constants::of(r.attr);
    const auto H = c.heads, G = c.kv_heads;
    const bool packed = c.packed;
    const shape& q = r.dims(0);
    message m;
    if (H <= 0 || H > max_elements || G <= 0 || H % G != 0) {
      r.fail(m << "heads " << H << " must be a positive multiple of key-value heads " << G);
      return;
    }
    const auto parts = packed ? H + 2 * G : H;
    if (q.rank != 3 || q[2] % parts != 0) {
      r.fail(m << "width of " << q << " is not a multiple of " << parts << (packed ? " (heads + 2 x key-value heads)" : " heads"));
      return;
    }
    if (!r.require(!q.late(2), "the width has a late size: heads need a constant one")) return;
    const auto D = q[2] / parts;
    const dim T = packed ? q.axis(1) : r.dims(1).axis(1);
    if (!packed &&
        !r.require(r.dims(1) == shape{q.axis(0), T, G * D} && r.dims(2) == r.dims(1), "keys and values must be [B,T,heads x head size]"))
      return;
    if (c.masked && !r.require(r.dims(packed ? 1 : 3) == shape{q.axis(0), T}, "mask must be [B,T]")) return;
    if (c.causal && !r.require(q[1] <= T.size, "causal attention has more queries than keys")) return;
    if (c.causal && !r.require(q.axis(1) == T || q.axis(1) == dim(1) || (!q.late(1) && T.slot < 0),
                               "causal attention of late sizes might have more queries than keys: give both one size, or one query"))
      return;
    if (!r.require(c.window >= 0, "the window is negative")) return;
    if (c.window != 0 && !r.require(c.causal, "a window needs causal attention")) return;
    if (!(c.dropout >= 0 && c.dropout < 1)) {
      r.fail(m << "dropout " << c.dropout << " is not in [0,1)");
      return;
    }
    if (c.scale == 0) c.scale = 1.0 / square_root(double(D));
    r.attr = c;
    r.yield({q.axis(0), q.axis(1), H * D}, r.type(0));
    r.yield({q.axis(0), H, q.axis(1)}, r.accum());
  }
  static constexpr void shard(sharding& s) {
    const auto c = constants::of(s.attr);
    attention_shape::shard(s);
    if (s.all_whole()) return;
    const std::int64_t D = s.dims(0)[2] / (c.packed ? c.heads + 2 * c.kv_heads : c.heads);
    s.yield_divided(0, axis_split::whole(2, c.heads * D).in_units(s.along(0).units));
    s.yield_divided(1, axis_split::whole(1, c.heads).in_units(s.along(0).units));
  }
  static constexpr void gradient(pullback& g) {
    std::array<std::int32_t, max_inputs> in{};
    const auto c = constants::of(g.attr);
    const int n = operands(c), grads = c.packed ? 1 : 3;
    for (int k = 0; k < n; ++k) in[std::size_t(k)] = g.x(k).id;
    in[std::size_t(n)] = g.y(0).id;
    in[std::size_t(n + 1)] = g.y(1).id;
    in[std::size_t(n + 2)] = g.dy().id;
    const auto r = g.machine().record(rules<attention_grad>, {in.data(), std::size_t(n + 3)}, g.attr, place::current(), g.ordinal);
    for (int k = 0; k < grads; ++k)
      if (g.wants(k)) g.give(k, {&g.machine(), r.out[std::size_t(k)]});
  }
};
}  // namespace op

struct attention_options {
  bool causal = true;
  int kv_heads = 0;    // key-value heads; 0: as many as heads; fewer: grouped-query attention
  double scale = 0;    // 0: 1 / sqrt(head size)
  double dropout = 0;  // dropout rate of attention probabilities, in [0, 1); evaluation programs do not drop
  int window = 0;      // a query attends only to its own key and the window - 1 before it; needs causal; 0: no window

  /// The constants of attention whose first operand is x.
  template <Machine M> constexpr op::attention_constants of(const tensor<M>& x, int heads, bool packed, bool masked) const {
    return {.heads = heads,
            .kv_heads = kv_heads == 0 ? heads : kv_heads,
            .causal = causal,
            .packed = packed,
            .masked = masked,
            .window = window,
            .scale = scale,
            .dropout = x.machine == nullptr || x.machine->training ? dropout : 0};
  }
};

/// y = dropout(softmax(scale q k^T + mask)) v for each head, in O(S) memory, with queries, keys and values packed in one tensor.
///
/// @param qkv    (B, S, (H + 2 G) D)
/// @param heads  H; G key-value heads serve H / G query heads each
/// @return       (B, S, H D)
/// @error        a width that is not a multiple of the heads; dropout outside [0, 1); a negative window, or one without causal
/// Causal: query s attends to keys 0 to s + T - S.
/// Window w: query s attends to the keys t with s + T - S - w < t <= s + T - S, in O(S w) time instead of O(S T).
/// Dropout: the probability of key t for query s of head h is kept and scaled by 1 / (1 - dropout) if u >= dropout, otherwise it is 0; u = word t % 4 of
/// Philox 4x32-10(key = seed, counter = (t / 4, (b H + h) S + s, step, stream)) as u32 / 2^32, where b and h count on all devices. The softmax denominator includes dropped probabilities.
/// Source: Vaswani et al. 2017, arXiv:1706.03762; Radford et al. 2018, section 4.1 (dropout); Dao 2023, arXiv:2307.08691; Beltagy et al. 2020,
/// arXiv:2004.05150, section 3.1, and Jiang et al. 2023, arXiv:2310.06825, section 2 (window).
template <Machine M> constexpr tensor<M> attention(tensor<M> qkv, int heads, attention_options o = {}, place at = place::current()) {
  return apply<op::attention>(at, o.of(qkv, heads, true, false), qkv);
}
/// Like above, with an additive key mask (B, S), e.g. of 0 and -infinity. A query whose keys are all masked gives zeros.
template <Machine M>
constexpr tensor<M> attention(tensor<M> qkv, tensor<M> mask, int heads, attention_options o = {}, place at = place::current()) {
  return apply<op::attention>(at, o.of(qkv, heads, true, true), qkv, mask);
}
/// Like above, with separate q (B, S, H D), k and v (B, T, G D).
template <Machine M>
constexpr tensor<M> attention(tensor<M> q, tensor<M> k, tensor<M> v, int heads, attention_options o = {}, place at = place::current()) {
  return apply<op::attention>(at, o.of(q, heads, false, false), q, k, v);
}
/// Like above, with separate q, k and v and an additive key mask (B, T).
template <Machine M>
constexpr tensor<M> attention(tensor<M> q, tensor<M> k, tensor<M> v, tensor<M> mask, int heads, attention_options o = {},
                              place at = place::current()) {
  return apply<op::attention>(at, o.of(q, heads, false, true), q, k, v, mask);
}
}  // namespace isotope
