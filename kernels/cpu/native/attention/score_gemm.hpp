#pragma once
/// The gemms with a block of scores, in small register tiles: on f32 numbers, or on pairs of bf16 at twice the rate.
///
/// Where pairs are slower than f32 (pair_rate.hpp), attention runs in f32, in 0.7 to 0.8 of the time. Pairs flush subnormal numbers to zero, which attention may (docs/NUMERICS.md), and take its weights rounded to bf16.
#include <initializer_list>

#include <isotope/backend/cpu/pair_rate.hpp>
#include <isotope/kernels/cpu/native/attention/rows.hpp>
#include <isotope/kernels/cpu/native/attention/score_tile.hpp>
#include <isotope/kernels/cpu/native/gemm/pair_microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class P>
inline constexpr bool scores_in_pairs = config::has_bf16_pairs && !config::has_bf16_tiles && std::same_as<P, precision::bf16>;

/// Pair k of row i of A is at data[i row_stride + k k_stride].
struct pair_block {
  const bfloat16* data;
  std::int64_t row_stride, k_stride;
};
/// As the f32 microkernel, on pairs.
template <int Rows, int Vectors>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT void pair_score_microkernel(const bfloat16* a, std::int64_t row_stride, std::int64_t k_stride,
                                                              const float* b, std::int64_t ldb, float* c, std::int64_t ldc, std::int64_t k,
                                                              bool add) {
  vector sum[Rows][Vectors] = {};
  add_pair_steps(sum, a, row_stride, k_stride, b, ldb, k);
  put_tile(sum, c, ldc, add);
}

/// Blocks of one head as operands in f32: on the left by rows, of either memory order; on the right with terms along the rows or down the columns.
struct f32_scores {
  static constexpr std::int64_t per_step = 1;
  using left = row_block;
  template <int Rows, int Vectors> static constexpr auto tile = &microkernel<Rows, Vectors>;

  struct operand {
    left rows;
    panel right;
  };
  static operand both(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    const row_block r = whole_rows(x, rows, D, room);
    return {r, {r.data, r.row_stride, whole(D, lanes), whole(D, lanes)}};
  }
  /// Returns rows that are streamed once, one register tile after the other: their sets of L1 do not matter.
  static left on_left(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    return x.type == dtype::f32 ? row_block{x.f32(), x.stride, 1} : whole_rows(x, rows, D, room);
  }
  static panel on_right(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) { return both(x, rows, D, room).right; }
  /// Returns the operand whose columns are the rows of x, padded with zeros.
  static panel transposed(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    const std::int64_t width = whole(rows, lanes);
    with_type(x, [&](const auto* from) { pack_right(from, 1, x.stride, D, rows, width, room); });
    return {room, width, width, width};
  }
  static ISOTOPE_INLINE rounded_vector round(const vector& x) { return rounded(x); }
  /// Return a tile of weights as left operand: with queries as rows and keys as terms, or the other way round.
  static left by_query(const float* tile) { return {tile, 1, score_tile::block}; }
  static left by_key(const float* tile) { return {tile, score_tile::block, 1}; }
};

/// The same in bf16, with an even number of elements per row. A tile of weights holds pairs of keys (32 rows of words), or rows of bf16, each in the
/// first half of a row of f32.
struct pair_scores {
  static constexpr std::int64_t per_step = 2;
  using left = pair_block;
  template <int Rows, int Vectors> static constexpr auto tile = &pair_score_microkernel<Rows, Vectors>;

  struct operand {
    left rows;
    panel right;
  };
  static operand both(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    return {on_left(x, rows, D, room), on_right(x, rows, D, room)};
  }
  static left on_left(const head_rows& x, std::int64_t, std::int64_t, float*) { return {first(x), x.stride, 2}; }
  static panel on_right(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    const std::int64_t width = whole(D, lanes);
    pack_pairs(first(x), x.stride, 1, rows, D, width, room);
    return {room, width, width, width};
  }
  static panel transposed(const head_rows& x, std::int64_t rows, std::int64_t D, float* room) {
    const std::int64_t width = whole(rows, lanes);
    pack_pairs(first(x), 1, x.stride, D, rows, width, room);
    return {room, width, width, width};
  }
  static left by_query(const float* tile) { return {reinterpret_cast<const bfloat16*>(tile), 2, 2 * score_tile::block}; }
  static left by_key(const float* tile) { return {reinterpret_cast<const bfloat16*>(tile), 2 * score_tile::block, 2}; }

  static ISOTOPE_INLINE rounded_vector round(const vector& x) {
    rounded_vector y{};
    isa::round_to_bf16(y, x);
    return y;
  }
  /// Stores the pairs (a[j], b[j]) at `to`.
  static ISOTOPE_INLINE void put_pairs(float* to, const rounded_vector& a, const rounded_vector& b) {
    const words w = interleave(a, b);
    __builtin_memcpy(to, &w, sizeof w);
  }
  static ISOTOPE_INLINE void put_row(float* tile, std::int64_t key, std::int64_t query, const rounded_vector& x) {
    __builtin_memcpy(reinterpret_cast<std::uint16_t*>(tile + key * score_tile::block) + query, &x, sizeof x);
  }

 private:
  static const bfloat16* first(const head_rows& x) { return static_cast<const bfloat16*>(x.data) + x.at; }
};

/// Stores row `row` of x: n floats times a factor. `from` is readable in whole vectors.
template <class Scores>
ISOTOPE_INLINE void store_row(const head_rows& x, std::int64_t row, const float* from, std::int64_t n, float factor) {
  const std::int64_t at = x.at + row * x.stride, some = n / lanes * lanes;
  const auto put = [&](auto* to, const auto& rounded) ISOTOPE_INLINE_LAMBDA {
    for (std::int64_t d = 0; d < some; d += lanes) {
      const auto v = rounded(load_vector(from + d) * factor);
      __builtin_memcpy(static_cast<void*>(to + at + d), &v, sizeof v);
    }
    if (some < n) store_some(to + at + some, rounded(load_vector(from + some) * factor), std::size_t(n - some) * sizeof *to);
  };
  if (x.type == dtype::bf16) put(static_cast<bfloat16*>(x.data), [](const vector& v) ISOTOPE_INLINE_LAMBDA { return Scores::round(v); });
  else put(static_cast<float*>(x.data), [](const vector& v) ISOTOPE_INLINE_LAMBDA { return v; });
}

/// Returns the tile of n queries from q0 on and the keys from k0 on, which end before `last`.
inline score_tile score_tile_of(const portable::attention_heads& h, std::int64_t q0, std::int64_t n, std::int64_t k0, std::int64_t last) {
  return {smaller(score_tile::block, last - k0), n, h.causal ? k0 - (h.T - h.S) - q0 : score_tile::nothing_hidden,
          h.range.window != 0 ? h.range.window : score_tile::no_window};
}

/// Whether rows of D elements of these operands are to be read as pairs of bf16.
inline bool in_pairs(const launch& l, std::initializer_list<std::size_t> operands, std::int64_t D) {
  bool all = D % 2 == 0 && pair_rate::fast();
  for (const std::size_t i : operands) all = all && l.in[i].type == dtype::bf16;
  return all;
}

/// What the rows of a register tile need: terms [from, to), and columns from `col` on.
struct tile_part {
  std::int64_t from, to, col;
};

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < m, j < b.width; part(i, rows) gives the terms and columns of each register tile. Reads B and writes C
/// in whole vectors. Both terms of a pair are taken.
template <class Scores, class Part>
void score_gemm(const typename Scores::left& a, std::int64_t m, const panel& b, float* c, std::int64_t ldc, bool add, const Part& part) {
  constexpr int tall = int(score_tile::rows);
  using tile = decltype(Scores::template tile<1, 1>);
  static constexpr std::remove_const_t<tile> tiles[3][4] = {
      {Scores::template tile<1, 1>, Scores::template tile<2, 1>, Scores::template tile<4, 1>, Scores::template tile<tall, 1>},
      {Scores::template tile<1, 2>, Scores::template tile<2, 2>, Scores::template tile<4, 2>, Scores::template tile<tall, 2>},
      {Scores::template tile<1, 3>, Scores::template tile<2, 3>, Scores::template tile<4, 3>, Scores::template tile<tall, 3>}};
  for (std::int64_t i = 0; i < m;) {
    const std::int64_t left = m - i;
    const int size = left >= score_tile::rows ? 3 : left >= 4 ? 2 : left >= 2 ? 1 : 0;
    const std::int64_t some = size == 3 ? score_tile::rows : std::int64_t(1) << size;
    const tile_part p = part(i, some);
    const std::int64_t from = p.from / Scores::per_step, steps = divide_up(p.to, Scores::per_step) - from;
    if (p.to > p.from || !add) {
      for (std::int64_t j = p.col; j < b.width;) {
        const std::int64_t more = (b.width - j) / lanes, v = more == 4 ? 2 : smaller(more, score_tile::vectors);  // 4 = 2 + 2
        tiles[v - 1][size](a.data + i * a.row_stride + from * a.k_stride, a.row_stride, a.k_stride, b.data + from * b.ld + j, b.ld,
                           c + i * ldc + j, ldc, steps, add);
        j += v * lanes;
      }
    }
    i += some;
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
