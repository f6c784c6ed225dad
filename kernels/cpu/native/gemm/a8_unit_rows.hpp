#pragma once
/// Activations rounded to 8 bits (quantized::round_activations), as a matrix unit loads them: a tile is a block of 32 of 16 rows, with its scales behind it.
///
/// Bound by instructions in f32: a division would take as long as the rest, so elements are multiplied by two numbers on either side of 1 / scale. Where both
/// products round to the same code, so does the quotient, which lies between them; otherwise (1 % of the tiles, and those with numbers that are not finite or
/// with tiny scales) the tile is divided.
#include <isotope/kernels/cpu/native/gemm/a8_round.hpp>
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Where a matrix unit meets the codes of a block: those of q8_0 in their own order, those of q4_0 as they lie in a word.
struct a8_unit_order {
  static constexpr int place(dtype t, int j) { return t == dtype::q8_0 ? j : j % 8 * 4 + j / 8; }
  static constexpr int element(dtype t, int at) { return t == dtype::q8_0 ? at : at % 4 * 8 + at / 4; }
};

/// A block of K of 16 rows, each of whose codes are in the order of a8_unit_order.
struct alignas(64) a8_row_tile {
  static constexpr std::int64_t rows = 16;
  std::int8_t code[rows][quantized::block];
  float scale[rows];
};

/// Rounds 16 rows, or fewer, whose tiles the others fill with zeros. Needs vectors of 16 f32.
template <dtype Type> class a8_unit_rows {
 public:
  /// Makes `blocks` tiles of x[r row_stride + k k_stride], r < rows <= 16.
  ISOTOPE_NOINLINE static void round(const float* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t rows, std::int64_t blocks,
                                     a8_row_tile* to) {
    const bool whole = rows == a8_row_tile::rows && k_stride == 1;
    alignas(64) float copy[count * quantized::block] = {};
    for (std::int64_t b = 0; b < blocks; ++b, x += quantized::block * k_stride) {
      if (!whole)
        for (std::int64_t r = 0; r < rows; ++r) take(x + r * row_stride, k_stride, copy + r * quantized::block);
      const float* from = whole ? x : copy;
      const std::int64_t apart = whole ? row_stride : quantized::block;
      if (!quickly(from, apart, to[b])) exactly(from, apart, to[b]);
    }
  }

 private:
  static constexpr int count = int(a8_row_tile::rows);
  using words __attribute__((vector_size(64))) = std::int32_t;
  using bytes __attribute__((vector_size(64))) = std::int8_t;
  using floats __attribute__((vector_size(64))) = float;

  /// As quantized::round_activations; returns whether that is certain.
  ISOTOPE_INLINE static bool quickly(const float* x, std::int64_t row_stride, a8_row_tile& to) {
    constexpr float whole = 0x1.8p23f;  // the low byte of x + whole is the code
    words most[count];
#pragma GCC unroll 16
    for (int r = 0; r < count; ++r) {
      const words low = size(x + r * row_stride), high = size(x + r * row_stride + 16);
      most[r] = low > high ? low : high;
    }
    const words largest = largest_of_each(most);
    const floats scale = as<floats>(largest) / 127.0f;
    words odd = largest >= 0x7f80'0000;                                  // infinite or NaN
    odd |= (scale < 0x1p-100f) & (scale != 0.0f);                        // the reciprocal might be infinite
    const floats one = scale == 0.0f ? floats{} : 1.0f / scale;          // (1 + e) / scale, |e| <= 2^-24
    alignas(64) float above[count], below[count];                        // differ from 1 / scale by at least 2^-24, that of the quotient
    const floats up = one * 0x1.000004p0f, down = one * 0x1.fffff8p-1f;  // 1 + 2^-22, 1 - 2^-22
    __builtin_memcpy(above, &up, sizeof up);
    __builtin_memcpy(below, &down, sizeof down);
    __builtin_memcpy(to.scale, &scale, sizeof scale);
#pragma GCC unroll 8
    for (int r = 0; r < count; r += 2) {
      words code[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int row = r + i / 2;
        floats v;
        __builtin_memcpy(&v, x + row * row_stride + i % 2 * 16, sizeof v);
        code[i] = as<words>(floats(isa::fma_lanes(v, floats(floats{} + above[row]), floats(floats{} + whole))));
        odd |= code[i] ^ as<words>(floats(isa::fma_lanes(v, floats(floats{} + below[row]), floats(floats{} + whole))));
      }
      // Word j holds the codes of elements j and 16 + j of two rows.
      const words all = (code[0] & 255) | (code[1] & 255) << 8 | (code[2] & 255) << 16 | code[3] << 24;
      const bytes y = ordered(as<bytes>(all), std::make_integer_sequence<int, 64>{});
      __builtin_memcpy(to.code[r], &y, sizeof y);
    }
    std::int32_t any = 0;
    for (int i = 0; i < 16; ++i) any |= odd[i];
    return any == 0;
  }
  ISOTOPE_NOINLINE static void exactly(const float* x, std::int64_t row_stride, a8_row_tile& to) {
    for (std::int64_t r = 0; r < count; ++r) {
      const a8_natural_block rounded = a8_round::natural(x + r * row_stride);
      to.scale[r] = rounded.scale;
      for (int j = 0; j < int(quantized::block); ++j) to.code[r][a8_unit_order::place(Type, j)] = rounded.code[j];
    }
  }
  ISOTOPE_INLINE static void take(const float* x, std::int64_t k_stride, float* to) {
    if (k_stride == 1) return static_cast<void>(__builtin_memcpy(to, x, sizeof(float) * quantized::block));
    for (std::int64_t j = 0; j < quantized::block; ++j) to[j] = x[j * k_stride];
  }
  /// Row 0 and row 1 of the bytes, in the order of the products.
  template <int... K> ISOTOPE_INLINE static bytes ordered(const bytes& x, std::integer_sequence<int, K...>) {
    return __builtin_shufflevector(
        x, x, (a8_unit_order::element(Type, K % 32) % 16 * 4 + a8_unit_order::element(Type, K % 32) / 16 + K / 32 * 2)...);
  }

  template <class To, class From> ISOTOPE_INLINE static To as(const From& x) {
    To y;
    static_assert(sizeof x == sizeof y);
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
  }
  /// The bits of |x[0:16]|, which are in the order of the numbers, with infinity and NaN above them.
  ISOTOPE_INLINE static words size(const float* x) {
    words w;
    __builtin_memcpy(&w, x, sizeof w);
    return w & 0x7fff'ffff;
  }
  /// y[r] = the largest element of x[r].
  ISOTOPE_INLINE static words largest_of_each(words (&x)[count]) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = larger<0>(x[2 * i], x[2 * i + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) x[i] = larger<1>(x[2 * i], x[2 * i + 1]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) x[i] = larger<2>(x[2 * i], x[2 * i + 1]);
    return larger<2>(x[0], x[1]);
  }
  /// The larger ones of neighbours. Step 0 leaves two candidates of a and b in turn in each quarter, step 1 one of four vectors, step 2 joins quarters.
  template <int Step> ISOTOPE_INLINE static words larger(const words& a, const words& b) {
    words x, y;
    if constexpr (Step == 0) {
      x = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
      y = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    } else if constexpr (Step == 1) {
      x = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      y = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    } else {
      x = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      y = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    return x > y ? x : y;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
