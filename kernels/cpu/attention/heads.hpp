#pragma once
/// Locates the queries, keys and values of one head, and says which keys a block of queries sees.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/kernels/cpu/attention/dropout.hpp>
#include <isotope/kernels/cpu/body/block_access.hpp>
#include <isotope/kernels/cpu/gemm/block_gemm.hpp>
#include <isotope/kernels/cpu/rows/parallel.hpp>
#include <isotope/op/attention.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// The rows of D values of one head: element (row, d) lies at + row stride + d elements behind `data`.
struct head_rows {
  void* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t at = 0, stride = 0;

  head_rows from_row(std::int64_t row) const { return {data, type, at + row * stride, stride}; }
  float* f32() const { return static_cast<float*>(data) + at; }
  /// Returns rows x D values in f32, in rows of whole vectors: in place if possible, else copied to the buffer and padded with zeros.
  left_block padded(std::int64_t rows, std::int64_t D, float* buffer) const {
    if (type == dtype::f32 && D % lanes == 0) return {f32(), stride, 1};
    const std::int64_t width = whole_vectors(D);
    for (std::int64_t r = 0; r < rows; ++r) {
      widen_run(data, type, at + r * stride, 1, buffer + r * width, D);
      for (std::int64_t d = D; d < width; ++d) buffer[r * width + d] = 0;
    }
    return {buffer, width, 1};
  }
  void store(std::int64_t row, const float* x, std::int64_t D) const { narrow_run(x, data, type, at + row * stride, D); }
};

/// The sizes and operands of an attention step.
struct attention_heads : op::attention_sizes {
  static constexpr std::int64_t block = 64;  // queries and keys of a tile: its scores take 16 KB of L1
  bool causal, packed, masked;
  float scale;
  attention_dropout dropout;
  op::attention_range range;

  explicit attention_heads(const launch& l) : attention_heads(l, l.constants<op::attention>()) {}
  attention_heads(const launch& l, const op::attention::constants& c)
      : attention_sizes(c, l.in[0].dims, l.in[c.packed ? 0 : 1].dims),
        causal(c.causal),
        packed(c.packed),
        masked(c.masked),
        scale(float(c.scale)),
        dropout(c, S),
        range(c, S, T) {}
  /// Returns the rows of part 0 (queries; index: head), 1 (keys) or 2 (values; index: key-value head) of batch b. x holds three operands or outputs,
  /// or one packed tensor.
  head_rows rows(std::span<const view> x, int part, std::int64_t b, std::int64_t index) const {
    const view& v = x[packed ? 0 : std::size_t(part)];
    const std::int64_t first = !packed || part == 0 ? 0 : part == 1 ? H : H + G;
    return {v.data, v.type, b * v.strides[0] + (first + index) * D, v.strides[1]};
  }
  /// Rows of head h of a tensor (B, S, H D).
  head_rows rows(const view& v, std::int64_t b, std::int64_t h) const { return {v.data, v.type, b * v.strides[0] + h * D, v.strides[1]}; }
  /// Fetches the additive mask of `n` keys from k0 on, or zeros.
  void mask(const launch& l, std::int64_t b, std::int64_t k0, std::int64_t n, float* to) const {
    if (!masked) {
      std::memset(to, 0, std::size_t(n) * 4);
      return;
    }
    const view& m = l.in[packed ? 1 : 3];
    widen_run(m.data, m.type, b * m.strides[0] + k0 * m.strides[1], m.strides[1], to, n);
  }
  /// Returns the range of keys in the tiles that n queries from q0 on see.
  op::index_range seen(std::int64_t q0, std::int64_t n) const { return range.keys_in_tiles(q0, q0 + n, block); }
  /// Returns the first query of the block at q0, counted from q0, whose window no longer contains key t; no later query sees it either.
  std::int64_t stale(std::int64_t q0, std::int64_t t) const { return larger_of(0, t - (T - S) - q0 + range.window); }
  /// Returns about how many pairs of query and key are in the tiles that are computed.
  double pairs() const {
    const double keys = range.window != 0 ? double(smaller(T, range.window + block)) : double(T) * (causal ? 0.6 : 1.0);
    return double(B * H) * double(S) * keys;
  }
  /// Returns the cost of drawing dropout for one pair of query and key, in the unit of for_tasks.
  double dropout_cost() const { return dropout.on ? 1.5 : 0.0; }
  std::int64_t padded_width() const { return whole_vectors(D); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
