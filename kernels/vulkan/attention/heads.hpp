#pragma once
/// The operands of attention as shaders see them: attention/operands.glsl mirrors the constants and the push constants made here.
#include <isotope/backend/vulkan/launch.hpp>
#include <isotope/kernels/vulkan/attention/dropout.hpp>
#include <isotope/op/attention.hpp>
#include <isotope/op/attention_packed.hpp>

namespace isotope::vulkan {

/// Returns the stride between batches. With a single batch it is unused and set to 0, so that other sequence lengths need no further pipelines.
inline std::int64_t batch_stride(const view& v) { return v.dims[0] > 1 ? v.strides[0] : 0; }

/// Queries, keys, values, outputs or their gradients: the first row of head 0, and the strides between batches and rows in elements.
struct head_rows {
  std::uint64_t at = 0;
  std::int64_t batch = 0, row = 0;
  dtype type = dtype::f32;

  head_rows() = default;
  /// The heads of `v` (B, rows, width) from column `first` on.
  head_rows(const view& v, std::int64_t first)
      : at(v.at + std::uint64_t(first * size_of(v.type))), batch(batch_stride(v)), row(v.strides[1]), type(v.type) {}
  /// Whether every row of D elements starts at a multiple of n elements.
  bool aligned(std::int64_t n, std::int64_t D) const {
    return D % n == 0 && batch % n == 0 && row % n == 0 && at % std::uint64_t(n * size_of(type)) == 0;
  }
};

struct attention_push {
  std::uint64_t q = 0, k = 0, v = 0, mask = 0, y = 0, lse = 0, dy = 0, delta = 0, dq = 0, dk = 0, dv = 0, scalars = 0;
  std::uint32_t B = 0, S = 0, T = 0;
  float scale = 0;
  std::uint32_t stream = 0, window = 0;
};
static_assert(sizeof(attention_push) == 120);

class attention_heads : public op::attention_sizes {
 public:
  bool causal, packed, masked;
  float scale;
  head_rows q, k, v, y, dy, dq, dk, dv;
  view mask;
  std::uint64_t lse = 0, delta = 0, scalars;
  std::uint32_t stream;
  attention_dropout dropout;
  op::attention_range seen;

  /// The operands of a forward step: outputs y and lse.
  static attention_heads forward(const launch& l) {
    attention_heads h(l);
    h.y = {l.out[0], 0};
    h.lse = l.out[1].at;
    return h;
  }
  /// The operands of a gradient step: those of the forward step, y, lse and dy. `delta` is in scratch memory.
  static attention_heads gradient(const launch& l) {
    attention_heads h(l);
    const auto n = std::size_t(op::attention_shape::operands(l.constants<op::attention>()));
    h.y = {l.in[n], 0};
    h.lse = l.in[n + 1].at;
    h.dy = {l.in[n + 2], 0};
    h.split(l.out, h.dq, h.dk, h.dv);
    h.delta = l.scratch;
    return h;
  }
  /// The operands of attention of packed sequences, as if all rows were one: shaders made with PACKED take B as the number of sequences, and their starts as a mask.
  static attention_heads of_packed(const launch& l) {
    const auto c = l.constants<op::attention_packed>();
    const shape rows{1, l.in[0].dims[0], l.in[0].dims[1]};
    attention_heads h(l, {.heads = c.heads, .kv_heads = c.heads, .causal = c.causal, .scale = c.scale}, rows, rows);
    const auto rows_of = [](const view& v) {
      head_rows r;
      r.at = v.at, r.row = v.strides[0], r.type = v.type;
      return r;
    };
    h.q = rows_of(l.in[0]), h.k = rows_of(l.in[1]), h.v = rows_of(l.in[2]), h.y = rows_of(l.out[0]);
    h.B = l.in[3].dims[0] - 1;
    h.mask.at = l.in[3].at;
    return h;
  }
  /// The number of workgroups that packed sequences take at most, where each owns `owned` rows of a head: see rows/packed_rows.glsl.
  groups packed_groups(std::int64_t owned) const { return cover(H * (S / owned + B + 2), 1); }
  bool empty() const { return B * S * H * D == 0; }
  /// Returns the number of query rows of all heads.
  std::int64_t rows() const { return B * H * S; }

  attention_push push() const {
    const auto word = [](std::int64_t n) { return std::uint32_t(n); };
    return {q.at,  k.at,  v.at,    mask.at, y.at,    lse,     dy.at, delta,  dq.at,
            dk.at, dv.at, scalars, word(B), word(S), word(T), scale, stream, word(seen.window)};
  }
  /// @param tiles  the shader's own constants 8 to 13
  constants specialization(std::int64_t invocations, std::uint32_t subgroup, bool wide, std::array<std::int64_t, 6> tiles) const {
    constants c{std::uint32_t(invocations), subgroup};
    c.add(D).add(H).add(G).add(causal).add(masked).add(wide);
    for (const auto n : tiles) c.add(n);
    for (const dtype t : {q.type, k.type, v.type, mask.type, y.type, dy.type}) c.add(t);
    for (const head_rows* x : {&q, &k, &v}) c.add(x->batch).add(x->row);
    c.add(masked ? batch_stride(mask) : 0).add(mask.strides[1]);
    for (const head_rows* x : {&y, &dy, &dq, &dk, &dv}) c.add(x->batch).add(x->row);
    dropout.add_to(c);
    c.add(seen.window != 0);
    return c;
  }
  /// Whether all rows that a shader touches start at multiples of n elements; tensors that the step lacks do not count.
  bool aligned(std::int64_t n) const {
    for (const head_rows* x : {&q, &k, &v, &y, &dy, &dq, &dk, &dv})
      if (x->at != 0 && !x->aligned(n, D)) return false;
    return true;
  }
  /// Returns what the forward kernels read, or what the gradient kernels read beside y, lse, dy and delta.
  std::vector<range> reads(const launch& l) const {
    std::vector<range> r(l.in.begin(), l.in.begin() + op::attention_shape::operands(l.constants<op::attention>()));
    dropout.add_reads(l, r);
    return r;
  }

 private:
  explicit attention_heads(const launch& l) : attention_heads(l, l.constants<op::attention>()) {}
  attention_heads(const launch& l, const op::attention::constants& c) : attention_heads(l, c, l.in[0].dims, l.in[c.packed ? 0 : 1].dims) {
    split(l.in, q, k, v);
    if (masked) mask = l.in[packed ? 1 : 3];
  }
  attention_heads(const launch& l, const op::attention::constants& c, const shape& queries, const shape& keys)
      : attention_sizes(c, queries, keys),
        causal(c.causal),
        packed(c.packed),
        masked(c.masked),
        scale(float(c.scale)),
        scalars(l.scalars),
        stream(l.ordinal),
        dropout(c.dropout),
        seen(c, S, T) {}
  void split(std::span<const view> x, head_rows& a, head_rows& b, head_rows& c) const {
    a = {x[0], 0};
    b = {x[packed ? 0 : 1], packed ? H * D : 0};
    c = {x[packed ? 0 : 2], packed ? (H + G) * D : 0};
  }
};

}  // namespace isotope::vulkan
