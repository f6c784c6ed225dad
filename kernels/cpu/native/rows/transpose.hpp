#pragma once
/// Transposes square blocks, one vector per row, in registers.
#include <utility>

#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Exchanges the off-diagonal S x S quarters of the 2S x 2S block whose rows a and b are.
template <int S, int... J> ISOTOPE_INLINE void exchange(vector& a, vector& b, std::integer_sequence<int, J...>) {
  constexpr int n = int(lanes);
  const vector low = __builtin_shufflevector(a, b, ((J & S) == 0 ? J : n + J - S)...);
  b = __builtin_shufflevector(a, b, ((J & S) == 0 ? J + S : n + J)...);
  a = low;
}
template <int S> ISOTOPE_INLINE void exchange_rows(vector (&r)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < int(lanes); ++i)
    if ((i & S) == 0) exchange<S>(r[i], r[i + S], std::make_integer_sequence<int, int(lanes)>{});
}
/// Transposes r: r[i][j] and r[j][i] change places.
ISOTOPE_INLINE void transpose(vector (&r)[lanes]) {
  if constexpr (lanes >= 16) exchange_rows<8>(r);
  if constexpr (lanes >= 8) exchange_rows<4>(r);
  exchange_rows<2>(r);
  exchange_rows<1>(r);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
