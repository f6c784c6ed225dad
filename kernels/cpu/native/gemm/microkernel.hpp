#pragma once
/// The f32 microkernel: it makes a register tile of C from packed panels.
///
/// Bound by multiply-adds: with operands in L2 it reaches 98 % of the rate of registers alone, for 12 x 32, 14 x 32, 8 x 48, 9 x 48 and 6 x 64 alike;
/// 24 x 16 stays at 90 %. 12 x 32 is taken because 12 and 32 divide the usual sizes: a panel of fewer vectors costs 2 %.
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using portable::put_tile;

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < Rows, j < lanes Vectors. k ascends, so the tile size does not change an element's bits: every product is fused,
/// which g++ would not do by itself for a single sum, where it takes a chain of multiply-adds for slow.
///
/// @param a    A[i, k] at a[i row_stride + k k_stride]
/// @param b    B[k, j] at b[k ldb + j]
/// @param add  C is added to instead of overwritten
template <int Rows, int Vectors>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT void microkernel(const float* a, std::int64_t row_stride, std::int64_t k_stride, const float* b,
                                                   std::int64_t ldb, float* c, std::int64_t ldc, std::int64_t k, bool add) {
  ISOTOPE_CONTRACT_HERE
  constexpr int groups = (Rows + 3) / 4;
  const float* base[groups];  // one addressing mode from base[g] reaches each of the rows 4g to 4g + 3
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) base[g] = a + 4 * g * row_stride;
  vector sum[Rows][Vectors] = {};
  for (; k > 0; --k) {
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

/// Divides rows into register tiles: run(size, i, to, ld, add) makes the tile of 1, 2, 4 or blocking::rows rows (`size` 0 to 3) from row i on, in
/// whole vectors.
template <class Run> ISOTOPE_INLINE void by_tiles(std::int64_t rows, const panel& b, const place& c, bool add, const Run& run) {
  for (std::int64_t i = 0; i < rows;) {
    const std::int64_t left = rows - i;
    const int size = left >= blocking::rows ? 3 : left >= 4 ? 2 : left >= 2 ? 1 : 0;
    const std::int64_t some = size == 3 ? blocking::rows : std::int64_t(1) << size;
    float* to = c.at + i * c.ld;
    if (c.padded || b.elems == b.width) {
      run(size, i, to, c.ld, add);
    } else {
      alignas(64) float edge[blocking::rows * blocking::cols];
      run(size, i, edge, b.width, false);
      for (std::int64_t r = 0; r < some; ++r)
        for (std::int64_t j = 0; j < b.elems; ++j)
          to[r * c.ld + j] = add ? to[r * c.ld + j] + edge[r * b.width + j] : edge[r * b.width + j];
    }
    i += some;
  }
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < rows and j < b.elems, or j < b.width where C is padded.
inline void panel_gemm(const row_block& a, std::int64_t rows, const panel& b, const place& c, std::int64_t k, bool add) {
  using tile = void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t, std::int64_t, bool);
  constexpr int tall = int(blocking::rows);
  static constexpr tile tiles[2][4] = {{&microkernel<1, 1>, &microkernel<2, 1>, &microkernel<4, 1>, &microkernel<tall, 1>},
                                       {&microkernel<1, 2>, &microkernel<2, 2>, &microkernel<4, 2>, &microkernel<tall, 2>}};
  by_tiles(rows, b, c, add, [&](int size, std::int64_t i, float* to, std::int64_t ld, bool more) {
    tiles[b.width / lanes - 1][size](a.data + i * a.row_stride, a.row_stride, a.k_stride, b.data, b.ld, to, ld, k, more);
  });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
