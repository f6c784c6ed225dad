#pragma once
/// Rounds activations to 8 bits as quantized::round_activations, with the same bits, 16 rows at a time.
///
/// Bound by instructions in f32: a division would take as long as the rest, so elements are multiplied by two numbers on either side of 1 / scale. Where both
/// products round to the same code, so does the quotient, which lies between them; otherwise two rows of the block are divided: of numbers in bf16, which often
/// are halves of others, one such pair in 16. Blocks with numbers that are not finite, or with small scales, are rounded one number after the other. 32 numbers of a
/// row are two vectors: the first and the second 16 in f32, those in even and in odd places in bf16.
#include <isotope/kernels/cpu/native/gemm/a8_round.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Rounds 16 rows, or fewer, whose tiles the others fill with zeros. Needs vectors of 16 f32.
/// @tparam Offsets  also makes a8_row_tile::offset, which needs config::has_byte_dots
/// @tparam T        float or bfloat16
template <dtype Type, bool Offsets, class T = float> class a8_round_rows {
 public:
  /// Makes `blocks` tiles of x[r row_stride + k k_stride], r < rows <= 16. Returns whether some scale is small.
  ISOTOPE_NOINLINE static bool round(const T* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t rows, std::int64_t blocks,
                                     a8_row_tile* to) {
    if (rows == a8_row_tile::rows && k_stride == 1) {
      bool found = false;
      for (std::int64_t b = 0; b < blocks; b += together) found |= some(x + b * width, row_stride, smaller(together, blocks - b), to + b);
      return found;
    }
    bool found = false;
    alignas(64) T copy[count * together * width] = {};
    for (std::int64_t b = 0; b < blocks; b += together) {
      const std::int64_t n = smaller(together, blocks - b);
      for (std::int64_t r = 0; r < rows; ++r)
        take(x + r * row_stride + b * width * k_stride, k_stride, n * width, copy + r * together * width);
      found |= some(copy, together * width, n, to + b);
    }
    return found;
  }

 private:
  static constexpr int count = int(a8_row_tile::rows);
  static constexpr std::int64_t width = quantized::block, together = 8;  // blocks: 16 KB of L1
  using words __attribute__((vector_size(64))) = std::int32_t;
  using bytes __attribute__((vector_size(64))) = std::int8_t;
  using floats __attribute__((vector_size(64))) = float;

  static constexpr bool halves = std::is_same_v<T, bfloat16>;
  /// 32 numbers of a row.
  struct numbers {
    floats first, second;
    explicit ISOTOPE_INLINE numbers(const T* x) {
      if constexpr (halves) {
        words w;
        __builtin_memcpy(&w, x, sizeof w);
        first = as<floats>(words(w << 16)), second = as<floats>(words(w & ~0xffff));
      } else {
        __builtin_memcpy(&first, x, sizeof first);
        __builtin_memcpy(&second, x + 16, sizeof second);
      }
    }
  };

  /// Numbers on either side of 1 / scale of each row, and where one of them is none.
  struct reciprocals {
    alignas(64) float above[count], below[count];
    words odd;
  };

  /// Scales from here on make products that are not subnormal: with a weight in f16 they are multiples of 2^-107, as are their sums.
  static constexpr float small = 0x1p-60f;

  /// Makes n <= `together` tiles: first all scales, then all codes, so that neither waits for the other.
  static bool some(const T* x, std::int64_t row_stride, std::int64_t n, a8_row_tile* to) {
    reciprocals by[together];
    words odd{};
    for (std::int64_t b = 0; b < n; ++b) find_scales(x + b * width, row_stride, to[b], by[b]), odd |= by[b].odd;
    for (std::int64_t b = 0; b < n; ++b) {
      make_codes(x + b * width, row_stride, by[b], to[b]);
      if constexpr (Offsets) find_offsets(to[b]);
    }
    if (!isa::has_bits(odd)) return false;
    for (std::int64_t b = 0; b < n; ++b)
      if (isa::has_bits(by[b].odd)) exactly(x + b * width, row_stride, to[b]);
    return true;
  }
  ISOTOPE_INLINE static void find_scales(const T* x, std::int64_t row_stride, a8_row_tile& to, reciprocals& by) {
    words most[count];
#pragma GCC unroll 16
    for (int r = 0; r < count; ++r) {
      const numbers v(x + r * row_stride);
      const words low = size(v.first), high = size(v.second);
      most[r] = low > high ? low : high;
    }
    const words largest = largest_of_each(most);
    const floats scale = as<floats>(largest) / 127.0f;
    by.odd = largest >= 0x7f80'0000;  // infinite or NaN
    by.odd |= (scale < small) & (scale != 0.0f);
    const floats one = scale == 0.0f ? floats{} : 1.0f / scale;  // (1 + e) / scale, |e| <= 2^-24
    // They differ from 1 / scale by at least 2^-24, that of the quotient.
    const floats up = one * 0x1.000004p0f, down = one * 0x1.fffff8p-1f;  // 1 + 2^-22, 1 - 2^-22
    __builtin_memcpy(by.above, &up, sizeof up);
    __builtin_memcpy(by.below, &down, sizeof down);
    __builtin_memcpy(to.scale, &scale, sizeof scale);
  }
  /// As quantized::round_activations, where by.odd is zero.
  ISOTOPE_INLINE static void make_codes(const T* x, std::int64_t row_stride, const reciprocals& by, a8_row_tile& to) {
    constexpr float whole = 0x1.8p23f;  // the low byte of x + whole is the code
#pragma GCC unroll 1
    for (int r = 0; r < count; r += 2) {
      words code[4], odd{};
      const numbers both[] = {numbers(x + r * row_stride), numbers(x + (r + 1) * row_stride)};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const int row = r + i / 2;
        const floats v = i % 2 == 0 ? both[i / 2].first : both[i / 2].second;
        code[i] = as<words>(floats(isa::fma_lanes(v, by.above[row] - floats{}, whole - floats{})));
        odd |= code[i] ^ as<words>(floats(isa::fma_lanes(v, by.below[row] - floats{}, whole - floats{})));
      }
      if (isa::has_bits(odd)) [[unlikely]]
        for (int i = 0; i < 4; ++i)
          code[i] = as<words>((i % 2 == 0 ? both[i / 2].first : both[i / 2].second) / to.scale[r + i / 2] + whole);
      // Word j holds the codes of elements j and 16 + j of two rows, in bf16 2 j and 2 j + 1.
      const words all = (code[0] & 255) | (code[1] & 255) << 8 | (code[2] & 255) << 16 | code[3] << 24;
      const bytes y = ordered(as<bytes>(all), std::make_integer_sequence<int, 64>{});
      __builtin_memcpy(to.code[r], &y, sizeof y);
    }
  }
  ISOTOPE_INLINE static void find_offsets(a8_row_tile& t) {
    words sum[count / 2];  // of four codes, for two rows
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; ++i) {
      words codes;
      __builtin_memcpy(&codes, t.code[2 * i], sizeof codes);
      sum[i] = words{};
      isa::add_products_of_bytes(sum[i], words{} + 0x01010101, codes);
    }
#pragma GCC unroll 3
    for (int n = count / 4; n > 0; n /= 2)
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) sum[i] = of_neighbours(sum[2 * i], sum[2 * i + 1]);
    const words offset = sum[0] * -a8_tile_order::excess(Type) + a8_row_tile::centre_bits;
    __builtin_memcpy(t.offset, &offset, sizeof offset);
  }
  ISOTOPE_INLINE static words of_neighbours(const words& a, const words& b) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  }
  ISOTOPE_NOINLINE static void exactly(const T* x, std::int64_t row_stride, a8_row_tile& to) {
    for (std::int64_t r = 0; r < count; ++r) {
      float wide[width];
      for (std::int64_t j = 0; j < width; ++j) wide[j] = float(x[r * row_stride + j]);
      const a8_natural_block rounded = a8_round::natural(wide);
      to.scale[r] = rounded.scale;
      to.offset[r] = -rounded.sum * a8_tile_order::excess(Type) + a8_row_tile::centre_bits;
      for (int j = 0; j < int(quantized::block); ++j) to.code[r][a8_tile_order::place(Type, j)] = rounded.code[j];
    }
  }
  ISOTOPE_INLINE static void take(const T* x, std::int64_t k_stride, std::int64_t n, T* to) {
    for (std::int64_t j = 0; j < n; ++j) to[j] = x[j * k_stride];
  }
  /// Row 0 and row 1 of the bytes, in the order of the products.
  template <int... K> ISOTOPE_INLINE static bytes ordered(const bytes& x, std::integer_sequence<int, K...>) {
    return __builtin_shufflevector(x, x, (place_of(a8_tile_order::element(Type, K % 32)) + K / 32 * 2)...);
  }
  /// Where the code of element j of the first row is.
  static constexpr int place_of(int j) { return halves ? j / 2 * 4 + j % 2 : j % 16 * 4 + j / 16; }

  template <class To, class From> ISOTOPE_INLINE static To as(const From& x) {
    To y;
    static_assert(sizeof x == sizeof y);
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
  }
  /// The bits of |x|, which are in the order of the numbers, with infinity and NaN above them.
  ISOTOPE_INLINE static words size(const floats& x) { return as<words>(x) & 0x7fff'ffff; }
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

/// Bytes of the tiles of M rows, or of `most` if they are fewer.
constexpr std::int64_t a8_row_bytes(std::int64_t M, std::int64_t K, std::int64_t most) {
  return divide_up(smaller(M, most), a8_row_tile::rows) * (K / quantized::block) * std::int64_t(sizeof(a8_row_tile));
}
/// Rounds the left operand of a product, in f32 or bf16, up to `most` rows at once, and calls multiply(batch, m0, count) for rows m0 to m0 + count - 1 after they are
/// rounded.
///
/// @param type   of the weight
/// @param small  receives for each 16 rows whether some scale is small or not finite; null: it is not wanted
template <bool Offsets, class F>
void a8_round_all(const launch& l, const portable::matmul_shape& s, dtype type, std::int64_t most, a8_row_tile* to, bool* small,
                  const F& multiply) {
  constexpr std::int64_t high = a8_row_tile::rows;
  const std::int64_t blocks = s.K / quantized::block;
  const auto round = [&]<dtype Type, class T>(std::integral_constant<dtype, Type>, const T* a, std::int64_t count) {
    portable::for_tasks(l, divide_up(count, high), double(count * s.K) * 0.3, [&](std::int64_t g, int) {
      const bool some = a8_round_rows<Type, Offsets, T>::round(a + g * high * s.a_row, s.a_row, s.a_k, smaller(high, count - g * high),
                                                               blocks, to + g * blocks);
      if (small != nullptr) small[g] = some;
    });
  };
  const auto round_numbers = [&](const auto* a, std::int64_t count) {
    if (type == dtype::q8_0) round(std::integral_constant<dtype, dtype::q8_0>{}, a, count);
    else round(std::integral_constant<dtype, dtype::q4_0>{}, a, count);
  };
  for (std::int64_t batch = 0; batch < s.batches; ++batch)
    for (std::int64_t m0 = 0; m0 < s.M; m0 += most) {
      const std::int64_t count = smaller(most, s.M - m0), at = s.offset_a(batch) + m0 * s.a_row;
      if (l.in[0].type == dtype::bf16) round_numbers(l.in[0].as<const bfloat16>() + at, count);
      else round_numbers(l.in[0].as<const float>() + at, count);
      multiply(batch, m0, count);
    }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
