#pragma once
/// Packs the right operand of a gemm into panels: micro_tile::cols columns wide, k rows long, f32, zeros past the last column.
///
/// Bound by bytes where B's rows are contiguous, by shuffles (16 x 16 transposes in registers) where its columns are. Each element is moved once per
/// gemm and multiplied with every row of A.
#include <cstring>
#include <type_traits>
#include <utility>

#include <isotope/core/precision.hpp>
#include <isotope/kernels/cpu/gemm/microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

using sixteen __attribute__((vector_size(64))) = float;
ISOTOPE_INLINE void load_sixteen(const float* x, sixteen& v) { std::memcpy(&v, x, sizeof v); }
ISOTOPE_INLINE void load_sixteen(const bfloat16* x, sixteen& v) {
  using bits __attribute__((vector_size(64))) = std::uint32_t;
  using half __attribute__((vector_size(32))) = std::uint16_t;
  half h;
  std::memcpy(&h, x, sizeof h);
  const bits wide = __builtin_convertvector(h, bits) << 16;
  std::memcpy(&v, &wide, sizeof v);
}
ISOTOPE_INLINE void load_sixteen(const float16* x, sixteen& v) {
  using bits __attribute__((vector_size(64))) = std::uint32_t;
  using whole __attribute__((vector_size(64))) = std::int32_t;
  using half __attribute__((vector_size(32))) = std::uint16_t;
  half h;
  std::memcpy(&h, x, sizeof h);
  const bits u = __builtin_convertvector(h, bits), sign = (u & 0x8000u) << 16, m = u & 0x7fffu;
  // The exponent is rebiased; infinity and NaN get the largest one. Subnormal numbers are converted from their integer, because a thread may flush
  // subnormal operands.
  const bits normal = (m << 13) + 0x3800'0000u, beyond = (m << 13) | 0x7f80'0000u;
  const sixteen tiny = __builtin_convertvector(whole(m), sixteen) * 0x1p-24f;
  bits below;
  std::memcpy(&below, &tiny, sizeof below);
  const bits is_tiny = bits(m < 0x400u), is_beyond = bits(m >= 0x7c00u);
  const bits wide = sign | (below & is_tiny) | (beyond & is_beyond) | (normal & ~(is_tiny | is_beyond));
  std::memcpy(&v, &wide, sizeof v);
}

/// Exchanges the off-diagonal halves of blocks of 2 Half x 2 Half elements.
template <int Half, std::size_t... I> ISOTOPE_INLINE void exchange_halves(sixteen (&r)[16], std::index_sequence<I...>) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if ((i & Half) != 0) continue;
    const sixteen a = r[i], b = r[i + Half];
    r[i] = __builtin_shufflevector(a, b, ((I & Half) == 0 ? int(I) : 16 - Half + int(I))...);
    r[i + Half] = __builtin_shufflevector(a, b, ((I & Half) == 0 ? int(I) + Half : 16 + int(I))...);
  }
}

/// y[j ldy + i] = x[i ldx + j] for a 16 x 16 block.
template <class T> ISOTOPE_INLINE void transpose_16x16(const T* x, std::int64_t ldx, float* y, std::int64_t ldy) {
  sixteen r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) load_sixteen(x + i * ldx, r[i]);
  constexpr auto each = std::make_index_sequence<16>{};
  exchange_halves<8>(r, each);
  exchange_halves<4>(r, each);
  exchange_halves<2>(r, each);
  exchange_halves<1>(r, each);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(y + i * ldy, &r[i], sizeof r[i]);
}

/// y[k ldy + j] = x[k k_stride + j col_stride] for k < rows, j < cols, and 0 for cols <= j < width.
template <class T>
void pack_panel(const T* x, std::int64_t k_stride, std::int64_t col_stride, std::int64_t rows, std::int64_t cols, std::int64_t width,
                float* y, std::int64_t ldy) {
  if (col_stride == 1) {
    for (std::int64_t k = 0; k < rows; ++k) {
      const T* from = x + k * k_stride;
      float* to = y + k * ldy;
      if (std::is_same_v<T, float> && cols == micro_tile::cols) {
        __builtin_memcpy(to, from, sizeof(float) * micro_tile::cols);  // the length is constant, so this is two vector moves
      } else {
        std::int64_t j = 0;
        if constexpr (std::is_same_v<T, float16>)  // compilers do not vectorize this conversion
          for (sixteen v; j + 16 <= cols; j += 16) load_sixteen(from + j, v), std::memcpy(to + j, &v, sizeof v);
        for (; j < cols; ++j) to[j] = float(from[j]);
      }
      for (std::int64_t j = cols; j < width; ++j) to[j] = 0;
    }
    return;
  }
  std::int64_t whole = 0;  // columns that went through the 16 x 16 blocks
  std::int64_t done = 0;   // rows of these columns
  if (k_stride == 1) {
    done = rows / 16 * 16;
    for (; whole + 16 <= cols; whole += 16)
      for (std::int64_t k = 0; k < done; k += 16) transpose_16x16(x + whole * col_stride + k, col_stride, y + k * ldy + whole, ldy);
  }
  for (std::int64_t k = 0; k < rows; ++k) {
    for (std::int64_t j = k < done ? whole : 0; j < cols; ++j) y[k * ldy + j] = float(x[k * k_stride + j * col_stride]);
    for (std::int64_t j = cols; j < width; ++j) y[k * ldy + j] = 0;
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
