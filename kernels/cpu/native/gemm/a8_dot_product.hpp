#pragma once
/// As a8_unit_product, with the same bits, by products of four unsigned and four signed bytes (vpdpbusd).
///
/// Bound by instructions: a tile of 16 rows takes 8 products and 2 instructions in f32 for each, 80 clocks. Codes of the weight are unsigned here, those of q8_0
/// larger by 128, those of q4_0 by 8; sums begin with minus what is thereby too much, and with the bits of f32(centre), so that no instruction converts them.
/// Four rows by two panels share what they load: by one panel, loads of activations would take 85 clocks.
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Needs config::has_byte_dots.
struct a8_dot_product {
  static constexpr bool signed_codes = false;
  struct held {};

  template <int Rows> ISOTOPE_NOINLINE static void make(const a8_product& of) {
    std::int64_t p = 0;
    for (; p + 2 <= of.panels; p += 2)
      for (int r = 0; r < Rows; r += some) rows<2>(of, r, p);
    if (p < of.panels)
      for (int r = 0; r < Rows; r += some) rows<1>(of, r, p);
  }

 private:
  static constexpr int some = 4;  // rows

  /// Rows [r, r + some) by panels [p, p + Panels).
  template <int Panels> ISOTOPE_INLINE static void rows(const a8_product& of, int r, std::int64_t p) {
    using integers __attribute__((vector_size(64))) = std::int32_t;
    using floats __attribute__((vector_size(64))) = float;
    float* y = of.y + r * of.ld + 16 * p;
    floats part[Panels][some];
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) a8_begin(part[v], y + 16 * v, of.ld, of.add);
    for (std::int64_t b = 0; b < of.blocks; ++b) {
      const a8_row_tile& x = of.a[b];
      const a8_panel_tile* w = of.w + p * of.blocks + b;
      if (r == 0)
        for (int v = 0; v < Panels; ++v) of.prefetch(p + v, b);
      integers sum[Panels][some];
#pragma GCC unroll 4
      for (int i = 0; i < some; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < Panels; ++v) sum[v][i] = integers{} + x.offset[r + i];
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        integers code[Panels];
#pragma GCC unroll 2
        for (int v = 0; v < Panels; ++v) __builtin_memcpy(&code[v], w[v * of.blocks].code[j], sizeof code[v]);
#pragma GCC unroll 4
        for (int i = 0; i < some; ++i) {
          integers word;
          isa::broadcast_word(word, x.code[r + i] + 4 * j);
#pragma GCC unroll 2
          for (int v = 0; v < Panels; ++v) isa::add_products_of_bytes(sum[v][i], code[v], word);
        }
      }
#pragma GCC unroll 2
      for (int v = 0; v < Panels; ++v) {
        floats scale;
        __builtin_memcpy(&scale, w[v * of.blocks].scale, sizeof scale);
        const floats centre = scale * -a8_row_tile::centre;  // exact
#pragma GCC unroll 4
        for (int i = 0; i < some; ++i) {
          floats shifted;
          __builtin_memcpy(&shifted, &sum[v][i], sizeof shifted);
          part[v][i] = isa::fma_lanes(floats(isa::fma_lanes(shifted, scale, centre)), x.scale[r + i] - floats{}, part[v][i]);
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) a8_put(part[v], y + 16 * v, of.ld);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
