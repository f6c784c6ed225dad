#pragma once
/// Blocks of K of 16 rows in 8 bits, of activations and of a weight, as products of many rows read them: four elements of K to a 32-bit word.
#include <isotope/core/quantized.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Where the codes of a block stand: those of q8_0 in their own order, those of q4_0 as they lie in a word.
struct a8_tile_order {
  static constexpr int place(dtype t, int j) { return t == dtype::q8_0 ? j : j % 8 * 4 + j / 8; }
  static constexpr int element(dtype t, int at) { return t == dtype::q8_0 ? at : at % 4 * 8 + at / 4; }
  /// What unsigned codes of the weight are larger by.
  static constexpr int excess(dtype t) { return t == dtype::q8_0 ? 128 : 8; }
};

/// Of activations.
struct alignas(64) a8_row_tile {
  static constexpr std::int64_t rows = 16;
  std::int8_t code[rows][quantized::block];
  float scale[rows];
  std::int32_t offset[rows];  // what sums with unsigned codes of the weight begin with, so that their bits are those of f32(centre + sum)
  /// Sums are below 2^22 in magnitude.
  static constexpr float centre = 0x1.8p23f;
  static constexpr std::int32_t centre_bits = 0x4b400000;
};

/// Calls put(k, w) for the eight lines of the codes of a record: byte i of 64 in w is that of element 4 k + i % 4 of row i / 4 in a8_tile_order. Vectors are passed by
/// reference, since one of 64 bytes is no result without AVX-512.
/// @tparam Signed  codes are the weight's; otherwise larger by a8_tile_order::excess
template <dtype Type, bool Signed, class F> ISOTOPE_INLINE void a8_each_line(const std::byte* codes, const F& put) {
  using integers __attribute__((vector_size(64))) = std::int32_t;
  using bytes __attribute__((vector_size(64))) = std::int8_t;
  if constexpr (Type == dtype::q8_0) {
    // Bytes of 16 rows, element by element, become words of four elements.
    const auto join_fours = []<int... K>(bytes& x, std::integer_sequence<int, K...>)
                                ISOTOPE_INLINE_LAMBDA { x = __builtin_shufflevector(x, x, (K % 4 * 16 + K / 4)...); };
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      bytes x;
      __builtin_memcpy(&x, codes + 64 * k, sizeof x);
      join_fours(x, std::make_integer_sequence<int, 64>{});
      if constexpr (!Signed) x ^= std::int8_t(-128);
      put(k, x);
    }
  } else {
    const integers mask = integers{} + 0x0f0f0f0f, sign = integers{} + std::int32_t(0x80000000);  // the highest code is in two's complement
    constexpr std::int8_t excess = Signed ? a8_tile_order::excess(Type) : 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      integers w;
      __builtin_memcpy(&w, codes + 64 * k, sizeof w);
      w ^= sign;
      const bytes low = reinterpret_cast<bytes>(w & mask) - excess, high = reinterpret_cast<bytes>((w >> 4) & mask) - excess;
      put(k, low);
      put(4 + k, high);
    }
  }
}

/// Of a weight: word i of line k holds the codes of row i that meet bytes 4 k to 4 k + 3 of a row of activations.
struct alignas(64) a8_panel_tile {
  std::int8_t code[8][64];
  float scale[quantized::panel_rows];

  /// Unpacks a record. Needs vectors of 16 f32.
  template <dtype Type, bool Signed> ISOTOPE_INLINE void take(const std::byte* record) {
    vector s = load_vector(reinterpret_cast<const float16*>(record));
    s += s - s;  // NaN where the scale is not finite
    __builtin_memcpy(scale, &s, sizeof s);
    a8_each_line<Type, Signed>(record + 2 * quantized::panel_rows,
                               [&](int k, const auto& line) ISOTOPE_INLINE_LAMBDA { __builtin_memcpy(code[k], &line, sizeof line); });
  }
};

/// Operands and result of a product of up to 16 rows of activations and some panels of a weight, whose tiles are one after another:
/// y[r ld + 16 p + i] = fma(product, scale of row r, y[...]) for one block after another, for row r, panel p < panels and its row i.
struct a8_product {
  const a8_row_tile* a;
  const a8_panel_tile* w;
  std::int64_t blocks, panels;
  float* y;
  std::int64_t ld;
  bool add;                      // to y; otherwise to zeros
  const std::byte* next;         // records to prefetch, of as many blocks and panels; null: none
  bool near;                     // into L1, otherwise into L2
  std::int64_t record, next_ld;  // bytes from one block to the next, and from one panel

  ISOTOPE_INLINE void prefetch(std::int64_t panel, std::int64_t block) const {
    if (next == nullptr) return;
    const std::byte* from = next + panel * next_ld + block * record;
    if (near)
      for (std::int64_t i = 0; i < record; i += 64) __builtin_prefetch(from + i, 0, 3);
    else
      for (std::int64_t i = 0; i < record; i += 64) __builtin_prefetch(from + i, 0, 2);
  }
};
/// The sums that a product begins with.
template <int Rows, class V> ISOTOPE_INLINE void a8_begin(V (&part)[Rows], const float* y, std::int64_t ld, bool add) {
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    part[r] = V{};
    if (add) __builtin_memcpy(&part[r], y + r * ld, sizeof part[r]);
  }
}
/// Stores sums; the last ones with +0 in place of -0.
template <int Rows, class V> ISOTOPE_INLINE void a8_put(V (&part)[Rows], float* y, std::int64_t ld, bool last = true) {
  if (last)
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) part[r] += V{};
// The pragma has no indentation, which clang-tidy takes for that of the loop. NOLINTNEXTLINE(readability-misleading-indentation)
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) __builtin_memcpy(y + r * ld, &part[r], sizeof part[r]);
}

/// Adds the sums of up to a8_joined blocks of K to those of the blocks before, if there are any.
inline void a8_join(const float* part, float* total, std::int64_t n, bool any) {
  for (std::int64_t i = 0; i < n; ++i) total[i] = any ? total[i] + part[i] : part[i];
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
