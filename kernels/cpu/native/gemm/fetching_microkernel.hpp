#pragma once
/// The f32 microkernel for rows that are read in place and come from memory, as weights do: it prefetches the rows of a later tile while it multiplies.
///
/// Bound by bytes where few columns use each row. A burst of prefetches before the tile fills the buffers of L1 and stalls; 6 lines for every 16 steps
/// pass behind the multiply-adds: 68 GFLOP/s instead of 47 for 16 columns and weights in memory, 99 for weights in L3 as without (Zen 2, one thread).
/// Packing the weights ahead of time was tried: panels of 16 rows are read once, too, but as fast as rows at best (60 GFLOP/s).
#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Rows to prefetch, which start at `at` and have the stride of the tile's own rows. The tile goes on by `step` floats for every 16 terms.
struct rows_ahead {
  static constexpr std::int64_t line = 16;  // floats
  // With more panels, a burst before each is of few lines, and the gemm is as fast with it or faster (2 % for 16 panels).
  static constexpr std::int64_t most_panels = 8;
  const float* at;
  std::int64_t step;
};

/// As microkernel, with the same bits, for rows that are contiguous along k.
template <int Rows, int Vectors>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT void fetching_microkernel(const float* a, std::int64_t row_stride, const float* b, std::int64_t ldb,
                                                            float* c, std::int64_t ldc, std::int64_t k, bool add, const float* ahead,
                                                            std::int64_t step) {
  ISOTOPE_CONTRACT_HERE
  constexpr int groups = (Rows + 3) / 4;
  const float* base[groups];  // as in microkernel
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) base[g] = a + 4 * g * row_stride;
  vector sum[Rows][Vectors] = {};
  while (k > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) __builtin_prefetch(ahead + i * row_stride, 0, 2);
    ahead += step;
    const std::int64_t some = smaller(k, rows_ahead::line);
    k -= some;
    for (std::int64_t j = some; j > 0; --j) {
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
        ++base[g];
      }
      b += ldb;
    }
  }
  put_tile(sum, c, ldc, add);
}

/// As panel_gemm, for rows that are contiguous along k.
inline void panel_gemm(const row_block& a, std::int64_t rows, const panel& b, const place& c, std::int64_t k, bool add,
                       const rows_ahead& next) {
  using tile = void (*)(const float*, std::int64_t, const float*, std::int64_t, float*, std::int64_t, std::int64_t, bool, const float*,
                        std::int64_t);
  constexpr int tall = int(blocking::rows);
  static constexpr tile tiles[2][4] = {
      {&fetching_microkernel<1, 1>, &fetching_microkernel<2, 1>, &fetching_microkernel<4, 1>, &fetching_microkernel<tall, 1>},
      {&fetching_microkernel<1, 2>, &fetching_microkernel<2, 2>, &fetching_microkernel<4, 2>, &fetching_microkernel<tall, 2>}};
  by_tiles(rows, b, c, add, [&](int size, std::int64_t i, float* to, std::int64_t ld, bool more) {
    tiles[b.width / lanes - 1][size](a.data + i * a.row_stride, a.row_stride, b.data, b.ld, to, ld, k, more, next.at + i * a.row_stride,
                                     next.step);
  });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
