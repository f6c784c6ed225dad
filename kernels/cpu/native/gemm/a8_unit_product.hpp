#pragma once
/// Products of rounded activations and weights in blocks on a matrix unit: 16 rows by panels of 16 rows of the weight.
///
/// The unit makes the sums of one block of K as integers, which leave it through L1; they are scaled and added in f32. Bound by those additions: 64 instructions
/// for a tile, 32 clocks, while the unit takes 16 for a product of half its depth. The products of a later block are under way meanwhile.
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Unit> struct a8_unit_product {
  static constexpr bool signed_codes = true;
  /// Lives while a task multiplies.
  struct held {
    const Unit unit{block_tiles};
  };

  template <int Rows> ISOTOPE_NOINLINE static void make(const a8_product& of) {
    using integers __attribute__((vector_size(64))) = std::int32_t;
    using floats __attribute__((vector_size(64))) = float;
    constexpr std::int64_t waiting = 8, ahead = 4;  // tiles of sums in L1, and those that the unit is ahead: 128 clocks
    alignas(64) std::int32_t sums[waiting][16 * 16];
    const a8_row_tile* a = of.a;
    const a8_panel_tile* w = of.w;
    const std::int64_t blocks = of.blocks, all = blocks * of.panels;
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
    float* y = of.y;
    for (std::int64_t p = 0, t = 0; p < of.panels; ++p, y += 16) {
      floats part[Rows] = {};
      for (std::int64_t b = 0; b < blocks; ++b, ++t) {
        if (begun < all) begin();
        of.prefetch(t);
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
      a8_put(part, y, of.ld, of.add);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
