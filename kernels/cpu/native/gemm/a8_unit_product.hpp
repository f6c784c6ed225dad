#pragma once
/// Products of rounded activations and weights in blocks on a matrix unit: 16 rows by panels of 16 rows of the weight, two panels at a time.
///
/// The unit makes the sums of one block of K as integers, which leave it through L1; they are converted, scaled and added in f32: 48 instructions for a tile, at
/// least 24 clocks. Measured on a Xeon, a tile: 34 clocks for these additions alone, 15 for clearing and multiplying, 16 for storing, 29 for the unit's loads,
/// products and stores together, which hardly overlap with the additions. So the unit works on the next four blocks of K of both panels, eight tiles, between
/// the additions of these, and both panels share the tiles and the scales of the rows, for which the additions take eight rows at a time. Clearing by loads of
/// zeros was slower.
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Unit> class a8_unit_product {
 public:
  static constexpr bool signed_codes = true;
  /// Lives while a task multiplies.
  struct held {
    const Unit unit{block_tiles};
  };

  template <int Rows> ISOTOPE_NOINLINE static void make(const a8_product& of) {
    if (of.panels >= 2) panels<Rows, 2>(of, 0, of.panels / 2);
    if (of.panels % 2 == 1) panels<Rows, 1>(of, of.panels - 1, 1);
  }

 private:
  static constexpr int depth = 4;  // blocks of K of a chunk: with two panels 8 KB of sums in L1, twice
  /// The chunk that the unit works on.
  struct chunk {
    const a8_row_tile* a;
    const a8_panel_tile* w;
    std::int64_t blocks, panel;  // at most `depth`; from the first tile of a panel to that of the next one
    std::int32_t (*sums)[16 * 16];
  };

  /// Makes Panels panels, `count` times, from panel p0.
  template <int Rows, int Panels> ISOTOPE_INLINE static void panels(const a8_product& of, std::int64_t p0, std::int64_t count) {
    alignas(64) std::int32_t sums[2][depth * Panels][16 * 16];
    // Copied to locals: the compiler must assume that the tile instructions write to memory.
    const a8_product my = of;
    const std::int64_t each = divide_up(my.blocks, depth), all = each * count;
    std::int64_t begun = 0, begun_block = 0;
    const a8_panel_tile* begun_panel = my.w + p0 * my.blocks;
    const auto next = [&]() ISOTOPE_INLINE_LAMBDA {
      chunk c{my.a + begun_block, begun_panel + begun_block, 0, my.blocks, sums[begun % 2]};
      if (begun++ == all) return c;
      c.blocks = smaller(depth, my.blocks - begun_block);
      begun_block += depth;
      if (begun_block >= my.blocks) begun_block = 0, begun_panel += Panels * my.blocks;
      return c;
    };
    chunk work = next();
    all_pieces<Panels>(work);
    for (std::int64_t q = 0; q < count; ++q) {
      const std::int64_t p = p0 + q * Panels;
      float* y = my.y + 16 * p;
      for (std::int64_t b = 0; b < my.blocks; b += depth) {
        const chunk now = work;
        work = next();
        if (my.next != nullptr)
          for (std::int64_t i = b; i < b + now.blocks; ++i)
            for (int v = 0; v < Panels; ++v) my.prefetch(p + v, i);
        add<0, Rows, Panels>(now, work, y, my.ld, my.add || b > 0, b + depth >= my.blocks);
        if constexpr (Rows > 8) add<1, Rows, Panels>(now, work, y, my.ld, my.add || b > 0, b + depth >= my.blocks);
      }
    }
  }

  /// Piece I of 16 of the unit's work: eight for two blocks of both panels, whose sums are cleared together. By turns with products, clearing takes up to 34
  /// clocks while another program uses the unit.
  template <int I, int Panels> ISOTOPE_INLINE static void piece(const chunk& c) {
    constexpr int b = I / 8 * 2, k = I % 8;  // of blocks b and b + 1
    if (b >= c.blocks) return;
    const bool two = b + 1 < c.blocks;
    if constexpr (k == 0) {
      clear<Panels>();
      Unit::template load<4>(c.a[b].code, quantized::block);
      Unit::template load<6>(c.w[b].code, 64);
    } else if constexpr (k == 1) {
      Unit::template add_bytes<0, 4, 6>();
      if constexpr (Panels == 2) Unit::template load<7>(c.w[c.panel + b].code, 64);
    } else if constexpr (k == 2) {
      if constexpr (Panels == 2) Unit::template add_bytes<1, 4, 7>();
      if (!two) return;
      Unit::template load<5>(c.a[b + 1].code, quantized::block);
      Unit::template load<6>(c.w[b + 1].code, 64);
    } else if constexpr (k == 3) {
      if (!two) return;
      Unit::template add_bytes<2, 5, 6>();
      if constexpr (Panels == 2) Unit::template load<7>(c.w[c.panel + b + 1].code, 64);
    } else if constexpr (k == 4) {
      if (two && Panels == 2) Unit::template add_bytes<3, 5, 7>();
    } else if constexpr (k == 5) {
      Unit::template store<0>(c.sums[b * Panels], 64);
    } else if constexpr (k == 6) {
      if constexpr (Panels == 2) Unit::template store<1>(c.sums[b * Panels + 1], 64);
    } else if (two) {
      Unit::template store<2>(c.sums[(b + 1) * Panels], 64);
      if constexpr (Panels == 2) Unit::template store<3>(c.sums[(b + 1) * Panels + 1], 64);
    }
  }
  template <int Panels> ISOTOPE_INLINE static void clear() {
    Unit::template zero<0>();
    if constexpr (Panels == 2) Unit::template zero<1>();
    Unit::template zero<2>();
    if constexpr (Panels == 2) Unit::template zero<3>();
  }
  template <int Panels> ISOTOPE_INLINE static void all_pieces(const chunk& c) {
    [&]<int... I>(std::integer_sequence<int, I...>)
        ISOTOPE_INLINE_LAMBDA { (piece<I, Panels>(c), ...); }(std::make_integer_sequence<int, 4 * depth>{});
  }

  /// Adds the sums of a chunk for rows 8 Half to 8 Half + 7, beside the unit's work on the next one.
  template <int Half, int Rows, int Panels>
  ISOTOPE_INLINE static void add(const chunk& now, const chunk& work, float* y, std::int64_t ld, bool to_y, bool last) {
    using floats __attribute__((vector_size(64))) = float;
    constexpr int rows = Rows > 8 ? 8 : Rows, pieces = Rows > 8 ? 2 : 4;  // pieces of each block
    y += 8 * Half * ld;
    floats part[Panels][rows];
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) a8_begin(part[v], y + 16 * v, ld, to_y);
    [&]<int... B>(std::integer_sequence<int, B...>)
        ISOTOPE_INLINE_LAMBDA { (add_block<Half, B, pieces>(now, work, part), ...); }(std::make_integer_sequence<int, depth>{});
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) a8_put(part[v], y + 16 * v, ld, last);
  }
  template <int Half, int B, int Pieces, int Panels, int Rows, class V>
  ISOTOPE_INLINE static void add_block(const chunk& now, const chunk& work, V (&part)[Panels][Rows]) {
    using integers __attribute__((vector_size(64))) = std::int32_t;
    constexpr int first = Pieces * (depth * Half + B), apart = Rows / Pieces;
    if (B >= now.blocks) {
      [&]<int... I>(std::integer_sequence<int, I...>)
          ISOTOPE_INLINE_LAMBDA { (piece<first + I, Panels>(work), ...); }(std::make_integer_sequence<int, Pieces>{});
      return;
    }
    V scale[Panels], zero[Panels];
#pragma GCC unroll 2
    for (int v = 0; v < Panels; ++v) {
      __builtin_memcpy(&scale[v], now.w[v * now.panel + B].scale, sizeof scale[v]);
      zero[v] = scale[v] - scale[v];
    }
    const float* by = now.a[B].scale + 8 * Half;
    const std::int32_t* sums = now.sums[B * Panels] + 16 * 8 * Half;
    const auto row = [&]<int R>(std::integral_constant<int, R>) ISOTOPE_INLINE_LAMBDA {
      if constexpr (R % apart == 0) piece<first + R / apart, Panels>(work);
      const V x = by[R] - V{};
#pragma GCC unroll 2
      for (int v = 0; v < Panels; ++v) {
        integers s;
        __builtin_memcpy(&s, sums + 16 * 16 * v + 16 * R, sizeof s);
        part[v][R] = isa::fma_lanes(V(isa::fma_lanes(V(__builtin_convertvector(s, V)), scale[v], zero[v])), x, part[v][R]);
      }
    };
    [&]<int... R>(std::integer_sequence<int, R...>)
        ISOTOPE_INLINE_LAMBDA { (row(std::integral_constant<int, R>{}), ...); }(std::make_integer_sequence<int, Rows>{});
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
