#pragma once
/// The f32 microkernel: it makes a register tile of C from packed panels.
///
/// Bound by multiply-adds: with operands in L2 it reaches 98 % of the rate of registers alone, for 12 x 32, 14 x 32, 8 x 48, 9 x 48 and 6 x 64 alike;
/// 24 x 16 stays at 90 %. 12 x 32 is taken because 12 and 32 divide the usual sizes: a panel of fewer vectors costs 2 %.
///
/// For rows that are read in place and come from memory, as weights do, it prefetches the rows of a later tile while it multiplies: bound by bytes where few
/// columns use each row. A burst of prefetches before the tile fills the buffers of L1 and stalls; 6 lines for every 16 steps pass behind the multiply-adds:
/// 68 GFLOP/s instead of 47 for 16 columns and weights in memory, 99 for weights in L3 as without (Zen 2, one thread). Packing the weights ahead of time was
/// tried: panels of 16 rows are read once, too, but as fast as rows at best (60 GFLOP/s).
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using portable::put_tile;

/// Rows to prefetch, which start at `at` and have the stride of the tile's own rows. The tile goes on by `step` floats for every 16 terms.
struct rows_ahead {
  static constexpr bool with_each_term = false;
  static constexpr std::int64_t line = 16;  // floats
  // With more panels, a burst before each is of few lines, and the gemm is as fast with it or faster (2 % for 16 panels, Zen 2; 5 % on a Xeon).
  static constexpr std::int64_t most_panels = 4;
  const float* at;
  std::int64_t step;

  template <int Rows> ISOTOPE_INLINE void fetch(std::int64_t row_stride) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) __builtin_prefetch(at + i * row_stride, 0, 2);
    at += step;
  }
};

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < Rows, j < lanes Vectors. k ascends, so the tile size does not change an element's bits: every product is fused,
/// which g++ would not do by itself for a single sum, where it takes a chain of multiply-adds for slow.
///
/// @param a      A[i, k] at a[i row_stride + k k_stride]
/// @param b      B[k, j] at b[k ldb + j]
/// @param add    C is added to instead of overwritten
/// @param ahead  what to prefetch, if anything: with each term, or with the first of every 16, for which A is contiguous along k
template <int Rows, int Vectors, class... Ahead>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT void microkernel(const float* a, std::int64_t row_stride, std::int64_t k_stride, const float* b,
                                                   std::int64_t ldb, float* c, std::int64_t ldc, std::int64_t k, bool add, Ahead... ahead) {
  ISOTOPE_CONTRACT_HERE
  constexpr int groups = (Rows + 3) / 4;
  constexpr bool with_terms = (false || ... || Ahead::with_each_term), fetches = sizeof...(Ahead) > 0 && !with_terms;
  if constexpr (fetches) k_stride = 1;
  const float* base[groups];  // one addressing mode from base[g] reaches each of the rows 4g to 4g + 3
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) base[g] = a + 4 * g * row_stride;
  vector sum[Rows][Vectors] = {};
  for (std::int64_t some = 0; k > 0; k -= some) {
    some = fetches ? smaller(k, rows_ahead::line) : k;
    if constexpr (fetches) (ahead.template fetch<Rows>(row_stride), ...);
    for (std::int64_t j = some; j > 0; --j) {
      if constexpr (with_terms) (ahead.template fetch<Rows>(row_stride), ...);
      vector bk[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) __builtin_memcpy(&bk[v], b + lanes * v, sizeof(vector));
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 4
        for (int i = 0; i < (Rows - 4 * g < 4 ? Rows - 4 * g : 4); ++i) {
          const vector x = base[g][i * row_stride] - vector{};
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) sum[4 * g + i][v] = isa::fma_lanes(vector(x), bk[v], sum[4 * g + i][v]);
        }
        base[g] += k_stride;
      }
      b += ldb;
    }
  }
  put_tile(sum, c, ldc, add);
}

/// A panel: B[k, j] is at data[k ld + j] for j < b.elems. The columns up to `width`, whole vectors, are readable.
struct panel {
  const float* data;
  std::int64_t ld, width, elems;
};
/// Where the sums of a tile are stored. `padded`: whole vectors may be written.
struct place {
  float* at;
  std::int64_t ld;
  bool padded;
  bfloat16* rounded = nullptr;  // where microkernels that round store the complete sums instead
  std::int64_t rounded_ld = 0;

  void round_to(bfloat16* out, std::int64_t out_ld) { rounded = out, rounded_ld = out_ld; }
  place part(std::int64_t row, std::int64_t col) const {
    return {at + row * ld + col, ld, padded, rounded == nullptr ? nullptr : rounded + row * rounded_ld + col, rounded_ld};
  }
};

/// Divides rows into register tiles: run(size, i, some) makes the tile of 1, 2, 4 or Tall rows (`size` 0 to 3) from row i on.
template <std::int64_t Tall, class Run> ISOTOPE_INLINE void each_row_tile(std::int64_t rows, const Run& run) {
  for (std::int64_t i = 0, some = 0; i < rows; i += some) {
    const std::int64_t left = rows - i;
    const int size = left >= Tall ? 3 : left >= 4 ? 2 : left >= 2 ? 1 : 0;
    some = size == 3 ? Tall : std::int64_t(1) << size;
    run(size, i, some);
  }
}
/// The same where C may have edges: run(size, i, some, to, ld, add) makes whole vectors.
template <class Run> ISOTOPE_INLINE void by_tiles(std::int64_t rows, const panel& b, const place& c, bool add, const Run& run) {
  each_row_tile<blocking::rows>(rows, [&](int size, std::int64_t i, std::int64_t some) ISOTOPE_INLINE_LAMBDA {
    float* to = c.at + i * c.ld;
    if (c.padded || b.elems == b.width) return run(size, i, some, to, c.ld, add);
    alignas(64) float edge[blocking::rows * blocking::cols];
    run(size, i, some, edge, b.width, false);
    for (std::int64_t r = 0; r < some; ++r)
      for (std::int64_t j = 0; j < b.elems; ++j) to[r * c.ld + j] = add ? to[r * c.ld + j] + edge[r * b.width + j] : edge[r * b.width + j];
  });
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < rows and j < b.elems, or j < b.width where C is padded.
template <class... Ahead>
void panel_gemm(const row_block& a, std::int64_t rows, const panel& b, const place& c, std::int64_t k, bool add, const Ahead&... next) {
  using tile =
      void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t, std::int64_t, bool, Ahead...);
  constexpr int tall = int(blocking::rows);
  static constexpr tile tiles[2][4] = {
      {&microkernel<1, 1, Ahead...>, &microkernel<2, 1, Ahead...>, &microkernel<4, 1, Ahead...>, &microkernel<tall, 1, Ahead...>},
      {&microkernel<1, 2, Ahead...>, &microkernel<2, 2, Ahead...>, &microkernel<4, 2, Ahead...>, &microkernel<tall, 2, Ahead...>}};
  by_tiles(rows, b, c, add, [&](int size, std::int64_t i, std::int64_t, float* to, std::int64_t ld, bool more) {
    tiles[b.width / lanes - 1][size](a.data + i * a.row_stride, a.row_stride, a.k_stride, b.data, b.ld, to, ld, k, more,
                                     Ahead{next.at + i * a.row_stride, next.step}...);
  });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
