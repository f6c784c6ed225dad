#pragma once
/// The operands of attention: attention/heads.h declares what kernels receive.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/attention.hpp>

#include "heads.h"

namespace isotope::cuda {

class attention_heads : public op::attention_sizes {
 public:
  bool packed;
  gpu::attention_arguments arguments{};

  /// The operands of a forward step: outputs y and lse.
  static attention_heads forward(const launch& l) {
    attention_heads h(l);
    h.arguments.y = rows_of(l.out[0], 0);
    h.arguments.lse = l.out[1].at;
    h.arguments.wide = h.aligned(4);
    return h;
  }
  /// The operands of a gradient step: those of the forward step, y, lse and dy. `delta` is in scratch memory.
  static attention_heads gradient(const launch& l) {
    attention_heads h(l);
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    h.arguments.y = rows_of(l.in[n], 0);
    h.arguments.lse = l.in[n + 1].at;
    h.arguments.dy = rows_of(l.in[n + 2], 0);
    h.split(l.out, h.arguments.dq, h.arguments.dk, h.arguments.dv);
    h.arguments.delta = l.scratch;
    h.arguments.wide = h.aligned(4);
    return h;
  }
  /// The bytes of scratch memory: 4 for each element of delta (B,H,S), and as many as the reference kernel needs where it runs instead.
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return 8 * s.in[0][0] * s.constants<op::attention_grad>().heads * s.in[0][1];
  }
  range delta() const { return {arguments.delta, 4 * rows()}; }

  bool empty() const { return B * S * H * D == 0; }
  bool dropped() const { return arguments.dropped != 0; }
  /// Returns the number of query rows of all heads.
  std::int64_t rows() const { return B * H * S; }
  /// Returns the number of blocks that own `block` of the rows of each head, queries or keys.
  std::int64_t query_blocks(std::int64_t block) const { return B * H * ((S + block - 1) / block); }
  std::int64_t key_blocks(std::int64_t block) const { return B * G * ((T + block - 1) / block); }

  /// Whether every tensor of heads that the step has is of this format.
  bool all_of(dtype t) const {
    return all([&](const gpu::head_rows& x) { return x.type == std::int32_t(t); });
  }
  /// Whether all rows that kernels touch start at multiples of n elements.
  bool aligned(std::int64_t n) const {
    return all([&](const gpu::head_rows& x) {
      const auto bytes = std::uint64_t(n * size_of(dtype(x.type)));
      return D % n == 0 && x.batch % n == 0 && x.row % n == 0 && x.at % bytes == 0;
    });
  }
  /// Returns what the forward kernels read, or what the gradient kernels read beside y, lse, dy and delta.
  std::vector<range> reads(const launch& l) const {
    std::vector<range> r(l.in.begin(), l.in.begin() + op::attention_shape::operands(l.constants<op::attention>()));
    if (dropped()) r.push_back(scalars_of(l));
    return r;
  }
  /// Returns what the gradient kernels read, without delta.
  std::vector<range> gradient_reads(const launch& l) const {
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    auto r = reads(l);
    r.insert(r.end(), {l.in[n], l.in[n + 1], l.in[n + 2]});
    return r;
  }
  std::vector<range> keys_written(const launch& l) const {
    return packed ? std::vector<range>{l.out[0]} : std::vector<range>{l.out[1], l.out[2]};
  }

 private:
  explicit attention_heads(const launch& l) : attention_heads(l, l.constants<op::attention>()) {}
  attention_heads(const launch& l, const op::attention::constants& c)
      : attention_sizes(c, l.in[0].dims, l.in[c.packed ? 0 : 1].dims), packed(c.packed) {
    auto& a = arguments;
    split(l.in, a.q, a.k, a.v);
    if (c.masked) {
      const view& mask = l.in[packed ? 1 : 3];
      a.mask = mask.at;
      a.mask_batch = mask.dims[0] > 1 ? mask.strides[0] : 0;
      a.mask_key = mask.strides[1];
      a.mask_type = std::int32_t(mask.type);
    }
    const auto word = [](std::int64_t n) { return std::int32_t(n); };
    a.B = word(B), a.H = word(H), a.G = word(G), a.S = word(S), a.T = word(T), a.D = word(D);
    a.causal = c.causal;
    a.masked = c.masked;
    a.dropped = c.dropout > 0;
    a.window = word(op::attention_range(c, S, T).window);
    a.scale = float(c.scale);
    a.factor = float(1 / (1 - c.dropout));
    a.last = c.dropout > 0 ? op::attention_shape::last_dropped(c.dropout) : 0;
    a.stream = l.ordinal;
    a.drawn_first = std::uint32_t(c.first_head);
    a.drawn_more = std::uint32_t(c.all_heads == 0 ? 0 : c.all_heads - c.heads);
    a.scalars = l.scalars;
  }
  /// The heads of `v` (B, rows, width) from column `first` on.
  static gpu::head_rows rows_of(const view& v, std::int64_t first) {
    return {v.at + std::uint64_t(first * size_of(v.type)), v.dims[0] > 1 ? v.strides[0] : 0, v.strides[1], std::int32_t(v.type)};
  }
  void split(std::span<const view> x, gpu::head_rows& a, gpu::head_rows& b, gpu::head_rows& c) const {
    a = rows_of(x[0], 0);
    b = rows_of(x[packed ? 0 : 1], packed ? H * D : 0);
    c = rows_of(x[packed ? 0 : 2], packed ? (H + G) * D : 0);
  }
  template <class F> bool all(const F& holds) const {
    const auto& a = arguments;
    for (const gpu::head_rows* x : {&a.q, &a.k, &a.v, &a.y, &a.dy, &a.dq, &a.dk, &a.dv})
      if (x->at != 0 && !holds(*x)) return false;
    return true;
  }
};

}  // namespace isotope::cuda
