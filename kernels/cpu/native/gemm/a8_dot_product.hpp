#pragma once
/// Products of rounded activations and weights in blocks by products of four unsigned and four signed bytes (vpdpbusd), with the bits of a8_unit_product.
///
/// Bound by instructions: a tile of 16 rows takes 8 products and 2 instructions in f32 for each, 80 clocks. Codes of the weight are unsigned here, those of q8_0
/// larger by 128, those of q4_0 by 8; sums begin with minus what is thereby too much, and with the bits of f32(centre), so that no instruction converts them.
/// Four rows by two panels share what they load: by one panel, loads of activations would take 85 clocks.
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Rows that a8_dot_rows makes.
inline constexpr int a8_dot_height = 4;

/// y[i ld + 16 v + j] (+)= the products of row r + i of the tiles a and row j of panel v < Panels over `blocks` blocks, i < a8_dot_height. Tiles of the next panel lie
/// `apart` behind those of a panel.
///
/// A function of its own, which keeps to the bound of 80 clocks a block; as a part of another one it took 85 to 92 of g++ 12. Needs config::has_byte_dots.
///
/// @param ahead  ahead(b) is called before block b, if there is one
template <int Panels, class... Ahead>
ISOTOPE_NOINLINE void a8_dot_rows(const a8_panel_tile* w, std::int64_t apart, const a8_row_tile* a, std::int64_t r, std::int64_t blocks,
                                  float* y, std::int64_t ld, bool add, const Ahead&... ahead) {
  using integers __attribute__((vector_size(64))) = std::int32_t;
  using floats __attribute__((vector_size(64))) = float;
  constexpr int some = a8_dot_height;
  floats part[Panels][some];
#pragma GCC unroll 2
  for (int v = 0; v < Panels; ++v) a8_begin(part[v], y + 16 * v, ld, add);
  const auto* x = reinterpret_cast<const std::byte*>(a->code[r]);
  const auto* factors = reinterpret_cast<const std::byte*>(a->scale + r);
  constexpr std::size_t to_offset = offsetof(a8_row_tile, offset) - offsetof(a8_row_tile, scale);
  for (std::int64_t b = 0; b < blocks; ++b, ++w, x += sizeof *a, factors += sizeof *a) {
    (ahead(b), ...);
    integers sum[Panels][some];
#pragma GCC unroll 4
    for (int i = 0; i < some; ++i) {
      isa::broadcast_word(sum[0][i], factors + to_offset + 4 * i);
      if constexpr (Panels == 2) sum[1][i] = sum[0][i];
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      integers code[Panels];
#pragma GCC unroll 2
      for (int v = 0; v < Panels; ++v) {
        __builtin_memcpy(&code[v], w[v * apart].code[j], sizeof code[v]);
        isa::hold(code[v]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < some; ++i) {
        integers word;
        isa::broadcast_word(word, x + quantized::block * i + 4 * j);
#pragma GCC unroll 2
        for (int v = 0; v < Panels; ++v) isa::add_products_of_bytes(sum[v][i], code[v], word);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) {
      floats scale;
      __builtin_memcpy(&scale, w[v * apart].scale, sizeof scale);
#pragma GCC unroll 4
      for (int i = 0; i < some; ++i) {
        floats shifted, by;
        __builtin_memcpy(&shifted, &sum[v][i], sizeof shifted);
        isa::broadcast_word(by, factors + 4 * i);
        part[v][i] = isa::fma_lanes(floats((shifted - a8_row_tile::centre) * scale), by, part[v][i]);
      }
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < Panels; ++v) a8_put(part[v], y + 16 * v, ld);
}

/// As a8_unit_product, for a8_tile_gemm.
struct a8_dot_product {
  static constexpr bool signed_codes = false;
  struct held {};

  template <int Rows> ISOTOPE_NOINLINE static void make(const a8_product& of) {
    std::int64_t p = 0;
    for (; p + 2 <= of.panels; p += 2) rows<Rows, 2>(of, p);
    if (p < of.panels) rows<Rows, 1>(of, p);
  }

 private:
  template <int Rows, int Panels> static void rows(const a8_product& of, std::int64_t p) {
    for (int r = 0; r < Rows; r += a8_dot_height)
      a8_dot_rows<Panels>(of.w + p * of.blocks, of.blocks, of.a, r, of.blocks, of.y + r * of.ld + 16 * p, of.ld, of.add,
                          [&](std::int64_t b) ISOTOPE_INLINE_LAMBDA {
                            for (int v = 0; r == 0 && v < Panels; ++v) of.prefetch(p + v, b);
                          });
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
