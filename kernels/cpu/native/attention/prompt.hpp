#pragma once
/// Attention of a prompt's tokens to the caches, up to 64 queries of a head at a time, in the blocks of the kernel for whole sequences: on a matrix unit, on pairs
/// of bf16, or in f32. It adds up in another order than the kernel for single queries, so that a token's bits depend on how many tokens a run has.
///
/// Blocks multiply values that not all of their queries see by weights of 0, so what is not finite there would reach queries that must not see it: such blocks are
/// left to the kernel for single queries.
#include <array>

#include <isotope/kernels/cpu/native/attention.hpp>
#include <isotope/kernels/cpu/native/attention/unit_scores.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Tokens first to first + count - 1 of a step. Where `prompt`, they follow one another in one sequence, in places that the caches have.
struct token_piece {
  std::int32_t first, count;
  bool prompt;
};

/// @tparam Unit  as in matmul
template <class P, class Unit = matrix_unit> class prompt_attention {
 public:
  static constexpr std::int64_t most = score_tile::block, least = 16;  // tokens of a piece
  static constexpr bool tiles = Unit::there && lanes == Unit::rows && std::same_as<P, precision::bf16>;
  static constexpr std::int64_t slice_floats(std::int64_t D) { return attention<f32_scores>::slice_floats(D); }

  prompt_attention(const launch& l, const op::attention_cached::constants& c) : l_(l), c_(c), size_(l.in[1].dims) {
    if constexpr (tiles) by_unit_ = unit_scores<Unit>::takes(l, {0, 1, 2}, size_.D);
    if constexpr (scores_in_pairs<P>) by_pairs_ = in_pairs(l, {0, 1, 2}, size_.D);
  }

  /// Computes head h of a prompt's piece, whose first token is at `position` of a slot. False: nothing was written, as values are not finite.
  bool run(const token_piece& piece, std::int64_t h, std::int64_t slot, std::int64_t position, float* slice) const {
    const std::int64_t g = h / (c_.heads / size_.G), end = position + piece.count;
    const std::array<view, 3> in{rows(l_.in[0], piece.first * l_.in[0].strides[0] + h * size_.D, piece.count, l_.in[0].strides[0]),
                                 cached(l_.in[1], slot, g, end), cached(l_.in[2], slot, g, end)};
    const std::array<view, 1> out{rows(l_.out[0], piece.first * l_.out[0].strides[0] + h * size_.D, piece.count, l_.out[0].strides[0])};
    launch step(l_);
    step.in = in;
    step.out = out;
    const portable::attention_heads heads(step, {.heads = 1, .kv_heads = 1, .causal = true, .window = c_.window, .scale = c_.scale});
    const std::int64_t hidden = c_.window == 0 ? position : heads.seen(0, piece.count).first;  // the first key that a query may not see
    if (!finite(heads.rows(step.in, 2, 0, 0).from_row(hidden), end - hidden)) return false;
    if constexpr (tiles)
      if (by_unit_) return attention<unit_scores<Unit>>::block_of(step, heads, 0, 0, 0, slice), true;
    if constexpr (scores_in_pairs<P>)
      if (by_pairs_) return attention<pair_scores>::block_of(step, heads, 0, 0, 0, slice), true;
    attention<f32_scores>::block_of(step, heads, 0, 0, 0, slice);
    return true;
  }

 private:
  const launch& l_;
  const op::attention_cached::constants& c_;
  op::cache_sizes size_;
  bool by_unit_ = false, by_pairs_ = false;

  /// `count` rows of one head, as a batch of one sequence, from element `at` on.
  view rows(const view& x, std::int64_t at, std::int64_t count, std::int64_t stride) const {
    view y = x;
    y.data = static_cast<char*>(x.data) + at * size_of(x.type);
    y.dims = {1, count, size_.D};
    y.strides = {0, stride, 1};
    return y;
  }
  view cached(const view& x, std::int64_t slot, std::int64_t g, std::int64_t end) const {
    return rows(x, slot * x.strides[0] + g * x.strides[1], end, x.strides[2]);
  }
  bool finite(const head_rows& x, std::int64_t count) const {
    vector sum{};
    with_type(x, [&](const auto* row) {
      for (std::int64_t r = 0; r < count; ++r, row += x.stride) {
        std::int64_t d = 0;
        for (; d + lanes <= size_.D; d += lanes) sum += load_vector(row + d) * 0.0f;
        if (d < size_.D) sum += load_some(row + d, size_.D - d) * 0.0f;
      }
    });
    bool all = true;
    for (int k = 0; k < lanes; ++k) all = all && sum[k] == 0;
    return all;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
