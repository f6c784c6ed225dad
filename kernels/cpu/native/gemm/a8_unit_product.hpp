#pragma once
/// The microkernel of rounded activations and weights in blocks on a matrix unit: 16 rows by panels of 16 rows of the weight, with the bits of a8_rows.
///
/// The unit makes the sums of one block of K as integers, which leave it through L1; they are scaled and added in f32. Bound by those additions: 64 instructions
/// for a tile, 32 clocks, while the unit takes 16 for a product of half its depth. The products of a later block are under way meanwhile.
#include <isotope/kernels/cpu/native/gemm/a8_unit_rows.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// A block of K of 16 rows of a weight: word i of line k holds the codes of row i that meet bytes 4 k to 4 k + 3 of a row of activations.
struct alignas(64) a8_panel_tile {
  std::int8_t code[8][64];
  float scale[quantized::panel_rows];

  using words __attribute__((vector_size(64))) = std::int32_t;
  using bytes __attribute__((vector_size(64))) = std::int8_t;

  template <dtype Type> ISOTOPE_INLINE void take(const std::byte* record) {
    const vector s = load_vector(reinterpret_cast<const float16*>(record));
    __builtin_memcpy(scale, &s, sizeof s);
    record += 2 * quantized::panel_rows;
    if constexpr (Type == dtype::q8_0) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        bytes x;
        __builtin_memcpy(&x, record + 64 * k, sizeof x);
        x = fours(x, std::make_integer_sequence<int, 64>{});
        __builtin_memcpy(code[k], &x, sizeof x);
      }
    } else {
      const words mask = words{} + 0x0f0f0f0f, sign = words{} + std::int32_t(0x80000000);  // the highest code is in two's complement
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        words w;
        __builtin_memcpy(&w, record + 64 * k, sizeof w);
        w ^= sign;
        const bytes low = bytes(w & mask) - std::int8_t(8), high = bytes(w >> 4 & mask) - std::int8_t(8);
        __builtin_memcpy(code[k], &low, sizeof low);
        __builtin_memcpy(code[4 + k], &high, sizeof high);
      }
    }
  }

 private:
  /// Bytes of 16 rows, element by element, to words of four elements.
  template <int... K> ISOTOPE_INLINE static bytes fours(const bytes& x, std::integer_sequence<int, K...>) {
    return __builtin_shufflevector(x, x, (K % 4 * 16 + K / 4)...);
  }
};

/// y[r ld + 16 p + i] (+)= the sums of `blocks` blocks, for r < Rows, panel p < panels and its row i. The tiles of the panels are one after another.
///
/// @param next  memory to prefetch, `step` bytes for each tile of a panel; null: none
template <class Unit, int Rows>
ISOTOPE_NOINLINE void a8_unit_product(const a8_row_tile* a, const a8_panel_tile* w, std::int64_t blocks, std::int64_t panels, float* y,
                                      std::int64_t ld, bool add, const std::byte* next, std::int64_t step) {
  using integers __attribute__((vector_size(64))) = std::int32_t;
  using floats __attribute__((vector_size(64))) = float;
  constexpr std::int64_t waiting = 8, ahead = 4;  // tiles of sums in L1, and those that the unit is ahead: 128 clocks
  alignas(64) std::int32_t sums[waiting][16 * 16];
  const std::int64_t all = blocks * panels;
  std::int64_t begun = 0, begun_block = 0;
  const auto multiply = [&]<int T>(std::integral_constant<int, T>) ISOTOPE_INLINE_LAMBDA {
    Unit::template zero<T>();
    Unit::template load<4 + T>(a[begun_block].code, quantized::block);
    Unit::template load<6 + T>(w[begun].code, 64);
    Unit::template add_bytes<T, 4 + T, 6 + T>();
    Unit::template store<T>(sums[begun % waiting], 64);
  };
  const auto begin = [&]() ISOTOPE_INLINE_LAMBDA {
    // By turns, so that a product does not wait for the tiles of the one before.
    if (begun % 2 == 0) multiply(std::integral_constant<int, 0>{});
    else multiply(std::integral_constant<int, 1>{});
    ++begun;
    if (++begun_block == blocks) begun_block = 0;
  };
  while (begun < smaller(ahead, all)) begin();
  for (std::int64_t p = 0, t = 0; p < panels; ++p, y += 16) {
    floats part[Rows] = {};
    for (std::int64_t b = 0; b < blocks; ++b, ++t) {
      if (begun < all) begin();
      if (next != nullptr) {
        for (std::int64_t i = 0; i < step; i += 64) __builtin_prefetch(next + i, 0, 2);
        next += step;
      }
      floats scale;
      __builtin_memcpy(&scale, w[t].scale, sizeof scale);
      const std::int32_t* sum = sums[t % waiting];
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        integers s;
        __builtin_memcpy(&s, sum + 16 * r, sizeof s);
        part[r] += __builtin_convertvector(s, floats) * (scale * a[b].scale[r]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      floats total{};
      if (add) __builtin_memcpy(&total, y + r * ld, sizeof total);
      total += part[r];
      __builtin_memcpy(y + r * ld, &total, sizeof total);
    }
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
