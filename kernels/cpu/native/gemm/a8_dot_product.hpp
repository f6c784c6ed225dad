#pragma once
/// As a8_unit_product, with the same bits, by products of four unsigned and four signed bytes (vpdpbusd).
///
/// Bound by instructions: a tile of 16 rows takes 8 products and 4 instructions in f32 for each, 96 clocks. Codes of the weight are unsigned here, those of q8_0
/// larger by 128, those of q4_0 by 8; sums begin with what is thereby too much. Four rows are summed by turns, since an addition waits for the one before.
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Needs config::has_byte_dots.
struct a8_dot_product {
  static constexpr bool signed_codes = false;
  struct held {};

  template <int Rows> ISOTOPE_NOINLINE static void make(const a8_product& of) {
    using integers __attribute__((vector_size(64))) = std::int32_t;
    using floats __attribute__((vector_size(64))) = float;
    constexpr int some = 4;
    const a8_panel_tile* w = of.w;
    float* y = of.y;
    for (std::int64_t p = 0, t = 0; p < of.panels; ++p, y += 16) {
      floats part[Rows] = {};
      for (std::int64_t b = 0; b < of.blocks; ++b, ++t) {
        of.prefetch(t);
        const a8_row_tile& x = of.a[b];
        integers code[8];
        floats scale;
        __builtin_memcpy(code, w[t].code, sizeof code);
        __builtin_memcpy(&scale, w[t].scale, sizeof scale);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; r += some) {
          integers sum[some];
#pragma GCC unroll 4
          for (int i = 0; i < some; ++i) sum[i] = integers{} + x.offset[r + i];
#pragma GCC unroll 8
          for (int j = 0; j < 8; ++j)
#pragma GCC unroll 4
            for (int i = 0; i < some; ++i) isa::add_products_with_word(sum[i], code[j], x.code[r + i] + 4 * j);
#pragma GCC unroll 4
          for (int i = 0; i < some; ++i) part[r + i] += __builtin_convertvector(sum[i], floats) * (scale * x.scale[r + i]);
        }
      }
      a8_put(part, y, of.ld, of.add);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
