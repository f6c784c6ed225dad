#pragma once
/// The microkernel of matmul and attention: it keeps a block of C, a few rows by 1 or 2 vectors, in registers.
///
/// Bound by fused multiply-adds: with AVX-512, 12 x 32 sums take 24 of the 32 registers, and each step of k reads 2 vectors and 12 broadcasts for 24
/// multiply-adds. A is read by strides, so that either memory order of A works without packing; B is read in rows of whole vectors. Narrower
/// processors use a block that fits their registers. Eigen's gemm was tried: it allocates, packs both operands in every call and takes no epilogue.
#include <cstdint>

#include <isotope/core/compiler.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// One vector register of f32.
inline constexpr std::int64_t lanes = config::vector_bytes / 4;
using vector __attribute__((vector_size(config::vector_bytes))) = float;

struct micro_tile {
  static constexpr int rows = config::vector_registers >= 32 ? 12 : 6;  // 24 sums of 32 registers, 12 of 16
  static constexpr std::int64_t cols = 2 * lanes;
};
/// n rounded up to whole vectors.
constexpr std::int64_t whole_vectors(std::int64_t n) { return (n + lanes - 1) / lanes * lanes; }

/// c[i, j] (+)= sum[i][j], in whole vectors.
template <int Rows, int Vectors> ISOTOPE_INLINE void put_tile(const vector (&sum)[Rows][Vectors], float* c, std::int64_t ldc, bool add) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + i * ldc + lanes * v;
      vector y = sum[i][v];
      if (add) {
        vector old;
        __builtin_memcpy(&old, to, sizeof old);
        y = old + y;
      }
      __builtin_memcpy(to, &y, sizeof y);
    }
  }
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < rows, j < lanes Vectors, k in ascending order.
///
/// @param a       A[i, k] at a[i row_stride + k k_stride], i < Rows
/// @param b       B[k, j] at b[k ldb + j]: lanes Vectors floats of each row are read
/// @param add     C is added to instead of overwritten
template <int Rows, int Vectors>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT void microkernel(const float* a, std::int64_t row_stride, std::int64_t k_stride, const float* b,
                                                   std::int64_t ldb, float* c, std::int64_t ldc, std::int64_t k, bool add) {
  ISOTOPE_CONTRACT_HERE
  static_assert(Rows % 3 == 0 || Rows < 3);
  constexpr int groups = (Rows + 2) / 3, each = Rows < 3 ? Rows : 3;
  const float* base[groups];  // one addressing mode from base[g] reaches each of the rows 3g, 3g + 1 and 3g + 2
#pragma GCC unroll 8
  for (int g = 0; g < groups; ++g) base[g] = a + 3 * g * row_stride;
  vector sum[Rows][Vectors] = {};
  // g++ does not fuse the multiply-adds of a loop with a single chain, for the sake of some processors, and the row would have other bits than among others.
  constexpr bool single = Rows * Vectors == 1;
  vector second_chain = {};
  if constexpr (single) __asm__("" : "+m"(second_chain));
  for (; k > 0; --k) {
    __builtin_prefetch(base[0] + 8 * k_stride);  // gains 15 to 25 % where A's columns are contiguous, costs nothing where its rows are
    vector bk[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) __builtin_memcpy(&bk[v], b + lanes * v, sizeof(vector));
    b += ldb;
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 3
      for (int i = 0; i < each; ++i) {
        const vector x = base[g][i * row_stride] - vector{};
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) sum[3 * g + i][v] += x * bk[v];
        if constexpr (single) second_chain += bk[0] * bk[0];
      }
      base[g] += k_stride;
    }
  }
  if constexpr (single) __asm__ volatile("" : : "m"(second_chain));
  put_tile(sum, c, ldc, add);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
