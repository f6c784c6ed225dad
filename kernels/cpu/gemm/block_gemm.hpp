#pragma once
/// C (+)= A B on blocks that lie in cache, with any number of rows: a grid of microkernel calls.
#include <isotope/kernels/cpu/gemm/microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// A[i, k] at data[i row_stride + k k_stride].
struct left_block {
  const float* data;
  std::int64_t row_stride, k_stride;
};

/// Calls microkernels down one column of register blocks: C[i, j] (+)= sum_k A[i, k] B[k, j] for i < m, j < Vectors lanes.
template <int Vectors>
void column_of_microkernels(left_block a, std::int64_t m, const float* b, std::int64_t ldb, float* c, std::int64_t ldc, std::int64_t k,
                            bool add) {
  constexpr int tall = micro_tile::rows;
  std::int64_t i = 0;
  const auto rows = [&]<int Rows>() {
    for (; i + Rows <= m; i += Rows)
      microkernel<Rows, Vectors>(a.data + i * a.row_stride, a.row_stride, a.k_stride, b, ldb, c + i * ldc, ldc, k, add);
  };
  rows.template operator()<tall>();
  rows.template operator()<tall / 2>();
  if constexpr (tall == 12) rows.template operator()<3>();
  rows.template operator()<1>();
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < m, j < n. Reads B and writes C in whole vectors, so n is rounded up to lanes.
inline void block_gemm(left_block a, std::int64_t m, const float* b, std::int64_t ldb, std::int64_t n, float* c, std::int64_t ldc,
                       std::int64_t k, bool add) {
  std::int64_t j = 0;
  for (; j + lanes < n; j += 2 * lanes) column_of_microkernels<2>(a, m, b + j, ldb, c + j, ldc, k, add);
  if (j < n) column_of_microkernels<1>(a, m, b + j, ldb, c + j, ldc, k, add);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
