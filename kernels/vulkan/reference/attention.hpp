#pragma once
/// Attention by the definition; the gradient recomputes each probability from the stored log-denominators.
#include <isotope/kernels/vulkan/attention/dropout.hpp>
#include <isotope/op/attention.hpp>
#include <isotope/shaders/reference_attention.hpp>
#include <isotope/shaders/reference_attention_dkv.hpp>
#include <isotope/shaders/reference_attention_dq.hpp>
#include <isotope/shaders/reference_attention_mean.hpp>

#include "items.hpp"

namespace isotope::vulkan {
namespace reference {

/// Strides, in elements, of a tensor (B, rows, ...) whose last axis is contiguous.
struct row_strides {
  std::uint32_t batch = 0, row = 0;
  row_strides() = default;
  explicit row_strides(const view& v) : batch(word(v.strides[0])), row(word(v.strides[1])) {}
};

/// The operands of attention, packed or not. Gradients are laid out alike.
struct attention_operands : op::attention_sizes {
  bool packed, causal;
  float scale;
  view q, k, v;                // if packed, views of the same bytes, each from its first column on
  const view* mask = nullptr;  // (B,T)
  attention_dropout dropout;
  std::int64_t window;

  attention_operands(const op::attention::constants& a, std::span<const view> x)
      : attention_sizes(a, x[0].dims, x[a.packed ? 0 : 1].dims),
        packed(a.packed),
        causal(a.causal),
        scale(float(a.scale)),
        q(x[0]),
        k(x[packed ? 0 : 1]),
        v(x[packed ? 0 : 2]),
        dropout(a.dropout),
        window(op::attention_range(a, S, T).window) {
    if (a.masked && x.size() > (packed ? 1u : 3u)) mask = &x[packed ? 1 : 3];
    if (!packed) return;
    skip(k, H * D);
    skip(v, (H + G) * D);
  }
  std::vector<range> reads(const launch& l) const {
    std::vector<range> r{q, k, v};
    if (mask != nullptr) r.push_back(*mask);
    dropout.add_reads(l, r);
    return r;
  }
  constants specialization(const launch& l) const {
    auto c = plain(l);
    c.add(q.type).add(k.type).add(v.type).add(mask != nullptr ? mask->type : dtype::f32).add(mask != nullptr).add(causal);
    c.add(H).add(G).add(D).add(mask != nullptr && B > 1 ? word(mask->strides[0]) : 0u);
    dropout.add_to(c);
    return c.add(window);
  }
  std::uint64_t mask_at() const { return mask != nullptr ? mask->at : 0; }

 private:
  static void skip(view& x, std::int64_t columns) {
    x.at += std::uint64_t(columns * size_of(x.type));
    x.bytes -= columns * size_of(x.type);
  }
};

}  // namespace reference

template <class P> struct kernel<op::attention, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    using reference::word, reference::row_strides;
    const reference::attention_operands x(l.constants<op::attention>(), l.in);
    const view &y = l.out[0], &lse = l.out[1];
    const auto n = x.B * x.H * x.S;
    if (n == 0) return;
    const struct {
      std::uint64_t q, k, v, mask, y, lse, scalars;
      row_strides q_at, k_at, v_at, y_at, lse_at;
      std::uint32_t B, S, T;
      float scale;
      std::uint32_t stream;
    } push{x.q.at,    x.k.at,           x.v.at,           x.mask_at(),      y.at,           lse.at,
           l.scalars, row_strides(x.q), row_strides(x.k), row_strides(x.v), row_strides(y), row_strides(lse),
           word(x.B), word(x.S),        word(x.T),        x.scale,          l.ordinal};
    r.add(shaders::reference_attention, x.specialization(l), push, reference::per_item(n), x.reads(l), {y, lse});
  }
};

template <class P> struct kernel<op::attention_grad, P, kernels::reference> {
  /// Returns the bytes for the log-sum and mean of each query.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& q = s.in[0];
    return 8 * q[0] * s.constants<op::attention>().heads * q[1];
  }

  static void record(const launch& l, recording& r) {
    using reference::word, reference::row_strides;
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    const reference::attention_operands x(l.constants<op::attention>(), l.in), dx(l.constants<op::attention>(), l.out);
    const view &y = l.in[n], &lse = l.in[n + 1], &dy = l.in[n + 2];
    const auto queries = x.B * x.H * x.S, keys = x.B * x.G * x.T;
    const range means(l.scratch, 8 * queries);
    if (queries > 0) {
      const struct {
        std::uint64_t y, dy, lse, means;
        row_strides y_at, dy_at, lse_at;
        std::uint32_t B, S;
      } push{y.at, dy.at, lse.at, l.scratch, row_strides(y), row_strides(dy), row_strides(lse), word(x.B), word(x.S)};
      r.add(shaders::reference_attention_mean, x.specialization(l).add(y.type).add(dy.type), push, reference::per_item(queries),
            {y, dy, lse}, {means});
    }

    struct operands {
      std::uint64_t q, k, v, mask, dy, means, scalars;
      row_strides q_at, k_at, v_at, dy_at;
      std::uint32_t B, S, T;
      float scale;
    };
    const operands o{x.q.at,           x.k.at,           x.v.at,          x.mask_at(), dy.at,     l.scratch, l.scalars, row_strides(x.q),
                     row_strides(x.k), row_strides(x.v), row_strides(dy), word(x.B),   word(x.S), word(x.T), x.scale};
    auto reads = x.reads(l);
    reads.insert(reads.end(), {dy, means});
    auto c = x.specialization(l);
    c.add(dy.type);
    if (queries > 0) {
      const struct {
        operands o;
        std::uint64_t dq;
        std::uint32_t dq_row, stream;
      } push{o, dx.q.at, word(dx.q.dims[2]), l.ordinal};
      r.add(shaders::reference_attention_dq, c, push, reference::per_item(queries), reads, {dx.q});
    }
    if (keys == 0) return;
    const struct {
      operands o;
      std::uint64_t dk, dv;
      std::uint32_t dk_row, stream;
    } push{o, dx.k.at, dx.v.at, word(dx.k.dims[2]), l.ordinal};
    r.add(shaders::reference_attention_dkv, c, push, reference::per_item(keys), reads, {dx.k, dx.v});
  }
};

}  // namespace isotope::vulkan
