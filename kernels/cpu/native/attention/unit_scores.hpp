#pragma once
/// The gemms with a block of scores on a matrix unit: scores are keys by queries, as elsewhere, and results (D, queries), so that the weights, pairs of keys
/// that replace the scores, are a right operand where they are.
///
/// Bound by the vector instructions between the gemms: 64 keys, 64 queries and D = 32 take 32 products of tiles, 512 clocks, where multiply-adds of f32
/// take 8,192. Products flush subnormal numbers to zero, which attention may (docs/NUMERICS.md), and take weights rounded to bf16.
#include <isotope/kernels/cpu/native/attention/score_gemm.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Blocks of one head whose rows of bf16 fill tiles: D is a multiple of `terms`.
template <class Unit> struct unit_scores : pair_scores {
  using unit = Unit;
  static constexpr std::int64_t terms = Unit::terms, block = score_tile::block;
  static_assert(Unit::rows == lanes && block % unit_rows<Unit>::most == 0);

  /// Whether heads of D elements of these operands are multiplied so.
  static bool takes(const launch& l, std::initializer_list<std::size_t> operands, std::int64_t D) {
    bool all = D % terms == 0 && Unit::permitted() && l.out[0].type == dtype::bf16;
    for (const std::size_t i : operands) all = all && l.in[i].type == dtype::bf16;
    return all;
  }
  /// Packs queries as pairs of D in rows of a block of columns.
  static void take_queries(const head_rows& x, std::int64_t queries, std::int64_t D, float* to) {
    pack_pairs(first(x), 1, x.stride, D, queries, block, to);
  }
  /// scores[k, q] = sum_d key[k, d] query[q, d] for q < width, and k < keys rounded up to a tile.
  /// @param room  space for keys that do not fill tiles
  static void multiply(const head_rows& keys, std::int64_t count, const float* queries, std::int64_t width, std::int64_t D, float* room,
                       float* scores) {
    const bfloat16* data = first(keys);
    std::int64_t stride = keys.stride;
    if (count % Unit::rows != 0) {
      auto* const copy = reinterpret_cast<bfloat16*>(room);
      for (std::int64_t k = 0; k < count; ++k) __builtin_memcpy(static_cast<void*>(copy + k * D), data + k * stride, std::size_t(D) * 2);
      __builtin_memset(static_cast<void*>(copy + count * D), 0, std::size_t((whole(count, Unit::rows) - count) * D) * 2);
      data = copy;
      stride = D;
    }
    for (std::int64_t k = 0; k < count; k += unit_rows<Unit>::most)
      strip<false>({data + k * stride, stride, Unit::rows * stride, terms}, count - k, queries, width, D / terms, scores + k * block);
  }
  /// results[d, q] (+)= sum_k value[k, d] weight[k, q] for q < width; weights are pairs of keys, zeros behind the last one of a tile.
  static void add_values(const head_rows& values, std::int64_t count, const float* weights, std::int64_t width, std::int64_t D, float* room,
                         float* results, bool add) {
    const bfloat16* data = first(values);
    auto* const turned = reinterpret_cast<bfloat16*>(room);
    const std::int64_t deep = divide_up(count, terms), tile = Unit::rows * terms;
    for (std::int64_t d = 0; d < D; d += Unit::rows)
      for (std::int64_t k = 0; k < deep; ++k)
        unit_copy<Unit>::take_columns(data + k * terms * values.stride + d, values.stride, smaller(terms, count - k * terms),
                                      turned + (d / Unit::rows * deep + k) * tile);
    for (std::int64_t d = 0; d < D; d += unit_rows<Unit>::most) {
      const unit_rows<Unit> rows{turned + d / Unit::rows * deep * tile, terms, deep * tile, tile};
      if (add) strip<true>(rows, D - d, weights, width, deep, results + d * block);
      else strip<false>(rows, D - d, weights, width, deep, results + d * block);
    }
  }
  /// Stores results (D, queries) times a factor for each query as rows.
  static void store(const head_rows& to, std::int64_t queries, const float* results, const float* factors, std::int64_t D) {
    bfloat16* const y = static_cast<bfloat16*>(to.data) + to.at;
    for (std::int64_t q = 0; q < queries; q += lanes) {
      const vector factor = load_vector(factors + q);
      for (std::int64_t d = 0; d < D; d += 2 * lanes) {
        vector low[lanes], high[lanes];
#pragma GCC unroll 16
        for (int i = 0; i < int(lanes); ++i) {
          low[i] = load_vector(results + (d + i) * block + q) * factor;
          high[i] = load_vector(results + (d + lanes + i) * block + q) * factor;
        }
        transpose(low);
        transpose(high);
        for (std::int64_t i = 0; i < smaller(lanes, queries - q); ++i)
          math::bf16_lanes::put_two_rounded(std::bit_cast<math::bf16_lanes::words>(low[i]), std::bit_cast<math::bf16_lanes::words>(high[i]),
                                            y + (q + i) * to.stride + d);
      }
    }
  }

 private:
  static const bfloat16* first(const head_rows& x) { return static_cast<const bfloat16*>(x.data) + x.at; }
  /// One or two tiles of rows times `width` columns of a block.
  template <bool Add>
  static void strip(const unit_rows<Unit>& rows, std::int64_t count, const float* right, std::int64_t width, std::int64_t tiles,
                    float* to) {
    using make = void (*)(const unit_rows<Unit>&, const panel&, std::int64_t, float*, std::int64_t);
    static constexpr make tiles_of_c[2][2] = {{&unit_microkernel<Unit, 1, 1, Add>, &unit_microkernel<Unit, 1, 2, Add>},
                                              {&unit_microkernel<Unit, 2, 1, Add>, &unit_microkernel<Unit, 2, 2, Add>}};
    for (std::int64_t q = 0; q < width; q += 2 * lanes)
      tiles_of_c[count > Unit::rows][width - q > lanes](rows, {right + q, block, 2 * lanes, 2 * lanes}, tiles, to + q, block);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
