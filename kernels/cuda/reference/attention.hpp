#pragma once
/// Attention by the definition; the gradient recomputes each probability from the stored log-denominators.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_attention.hpp>
#include <isotope/op/attention.hpp>

#include "attention.h"

namespace isotope::cuda {
namespace reference {

inline gpu::attention_rows rows_of(const view& v) { return {v.strides[0], v.strides[1]}; }

/// The operands of attention, packed or not. Gradients are laid out alike.
struct attention_operands : op::attention_sizes {
  bool packed, causal;
  double scale, dropout;
  std::uint32_t drawn_first, drawn_more;
  view q, k, v;                // if packed, views of the same bytes, each from its first column on
  const view* mask = nullptr;  // (B,T)
  std::int64_t window;

  attention_operands(const op::attention::constants& a, std::span<const view> x)
      : attention_sizes(a, x[0].dims, x[a.packed ? 0 : 1].dims),
        packed(a.packed),
        causal(a.causal),
        scale(a.scale),
        dropout(a.dropout),
        drawn_first(std::uint32_t(a.first_head)),
        drawn_more(std::uint32_t(a.all_heads == 0 ? 0 : a.all_heads - a.heads)),
        q(x[0]),
        k(x[packed ? 0 : 1]),
        v(x[packed ? 0 : 2]),
        window(op::attention_range(a, S, T).window) {
    if (a.masked && x.size() > (packed ? 1u : 3u)) mask = &x[packed ? 1 : 3];
    if (!packed) return;
    skip(k, H * D);
    skip(v, (H + G) * D);
  }
  gpu::reference_attention_arguments arguments(const launch& l) const {
    gpu::reference_attention_arguments g{};
    g.q = q.at;
    g.k = k.at;
    g.v = v.at;
    g.q_at = rows_of(q);
    g.k_at = rows_of(k);
    g.v_at = rows_of(v);
    g.q_type = std::int32_t(q.type);
    g.k_type = std::int32_t(k.type);
    g.v_type = std::int32_t(v.type);
    if (mask != nullptr) {
      g.mask = mask->at;
      g.mask_at = rows_of(*mask);
      g.mask_type = std::int32_t(mask->type);
    }
    g.B = B;
    g.S = S;
    g.T = T;
    g.H = H;
    g.G = G;
    g.D = D;
    g.window = window;
    g.scale = scale;
    g.causal = causal;
    if (dropout > 0) {
      g.dropped = 1;
      g.last = op::attention_shape::last_dropped(dropout);
      g.factor = 1 / (1 - dropout);
      g.scalars = l.scalars;
      g.stream = l.ordinal;
      g.drawn_first = drawn_first;
      g.drawn_more = drawn_more;
    }
    return g;
  }
  std::vector<range> reads(const launch& l) const {
    std::vector<range> r{q, k, v};
    if (mask != nullptr) r.push_back(*mask);
    if (dropout > 0) r.push_back(scalars_of(l));
    return r;
  }

 private:
  static void skip(view& x, std::int64_t columns) {
    x.at += std::uint64_t(columns * size_of(x.type));
    x.bytes -= columns * size_of(x.type);
  }
};

}  // namespace reference

template <class P> struct kernel<op::attention, P, kernels::reference> {
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const reference::attention_operands x(l.constants<op::attention>(), l.in);
    const view &y = l.out[0], &lse = l.out[1];
    const auto n = x.B * x.H * x.S;
    if (n == 0) return;
    auto g = x.arguments(l);
    g.y = y.at;
    g.y_at = reference::rows_of(y);
    g.y_type = std::int32_t(y.type);
    g.lse = lse.at;
    g.lse_at = reference::rows_of(lse);
    r.add(fatbins::reference_attention, "reference_attention", g, per_item(n), x.reads(l), {y, lse});
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::reference> {
  static constexpr bool counts_all_elements = true;
  /// Returns the bytes for the mean of each query.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& q = s.in[0];
    return 8 * q[0] * s.constants<op::attention>().heads * q[1];
  }

  static void record(const launch& l, recording& r) {
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    const reference::attention_operands x(l.constants<op::attention>(), l.in), dx(l.constants<op::attention>(), l.out);
    const view &y = l.in[n], &lse = l.in[n + 1], &dy = l.in[n + 2];
    const auto queries = x.B * x.H * x.S, keys = x.B * x.G * x.T;
    const range means(l.scratch, 8 * queries);
    auto g = x.arguments(l);
    g.y = y.at;
    g.y_at = reference::rows_of(y);
    g.y_type = std::int32_t(y.type);
    g.lse = lse.at;
    g.lse_at = reference::rows_of(lse);
    g.dy = dy.at;
    g.dy_at = reference::rows_of(dy);
    g.dy_type = std::int32_t(dy.type);
    g.means = l.scratch;
    g.dq = dx.q.at;
    g.dq_at = reference::rows_of(dx.q);
    g.dk = dx.k.at;
    g.dk_at = reference::rows_of(dx.k);
    g.dv = dx.v.at;
    g.dv_at = reference::rows_of(dx.v);
    auto reads = x.reads(l);
    reads.insert(reads.end(), {dy, lse, means});
    if (queries > 0) {
      r.add(fatbins::reference_attention, "reference_attention_mean", g, per_item(queries), {y, dy}, {means});
      r.add(fatbins::reference_attention, "reference_attention_dq", g, per_item(queries), reads, {dx.q});
    }
    if (keys > 0) r.add(fatbins::reference_attention, "reference_attention_dkv", g, per_item(keys), reads, {dx.k, dx.v});
  }
};

}  // namespace isotope::cuda
