#pragma once
/// As a8_panel, with the same bits, for many rows of activations: the codes of a record are put in order once for all of them.
///
/// Bound by products of bytes: for each row, a record of 16 rows of the weight takes 8 of them, of 64 bytes each, and 4 instructions in f32. Codes of the weight
/// are unsigned here, those of q8_0 larger by 128, those of q4_0 by 8; the sums begin with what is thereby too much (a8_block::offset). Sums of up to 16 rows
/// and the codes of a record stay in registers.
#include <isotope/kernels/cpu/gemm/a8.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

class a8_rows {
 public:
  /// As portable::a8_panels::of_format::many.
  template <dtype Type>
  static void columns(const portable::a8_block* a, std::int64_t lda, std::int64_t rows, const std::byte* record, std::int64_t blocks,
                      float* tile, std::int64_t ld) {
    const auto some = [&]<int Count>(std::integral_constant<int, Count>) {
      for (; rows >= Count; rows -= Count, a += Count * lda, tile += Count * ld) rows_of<Type, Count>(a, lda, record, blocks, tile, ld);
    };
    some(std::integral_constant<int, 16>{});
    some(std::integral_constant<int, 8>{});
    some(std::integral_constant<int, 4>{});
    some(std::integral_constant<int, 2>{});
    some(std::integral_constant<int, 1>{});
  }

 private:
  using words __attribute__((vector_size(64))) = std::int32_t;
  using bytes __attribute__((vector_size(64))) = std::int8_t;
  using sums __attribute__((vector_size(64))) = float;

  template <dtype Type, int Rows>
  ISOTOPE_NOINLINE static void rows_of(const portable::a8_block* a, std::int64_t lda, const std::byte* record, std::int64_t blocks,
                                       float* tile, std::int64_t ld) {
    for (std::int64_t first = 0; first < blocks; first += portable::a8_joined) {
      sums part[Rows] = {};
      for (std::int64_t b = first; b < smaller(blocks, first + portable::a8_joined); ++b, record += quantized::record_bytes(Type)) {
        words code[8];
        sums scale;
        portable::load_sixteen(reinterpret_cast<const float16*>(record), scale);
        take_codes<Type>(record + 2 * quantized::panel_rows, code);
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) {
          const portable::a8_block& x = a[r * lda + b];
          words sum = words{} + x.offset;
#pragma GCC unroll 8
          for (int j = 0; j < 8; ++j) isa::add_products_with_word(sum, code[j], x.code + 4 * j);
          part[r] += __builtin_convertvector(sum, sums) * (scale * x.scale);
        }
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        sums total{};
        if (first > 0) __builtin_memcpy(&total, tile + r * ld, sizeof total);
        total += part[r];
        __builtin_memcpy(tile + r * ld, &total, sizeof total);
      }
    }
  }

  /// code[j] = the four unsigned codes of each row that meet word j of the activations, in the order of a8_order.
  template <dtype Type> ISOTOPE_INLINE static void take_codes(const std::byte* x, words (&code)[8]) {
    if constexpr (Type == dtype::q8_0) {
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        bytes low, high;  // elements 8 g to 8 g + 3 of all rows, and the four behind them
        __builtin_memcpy(&low, x + 128 * g, sizeof low);
        __builtin_memcpy(&high, x + 128 * g + 64, sizeof high);
        code[2 * g] = fours<0>(low, high, std::make_integer_sequence<int, 64>{});
        code[2 * g + 1] = fours<1>(low, high, std::make_integer_sequence<int, 64>{});
      }
    } else {
      const words mask = words{} + 0x0f0f0f0f, sign = words{} + std::int32_t(0x80000000);  // the highest code is in two's complement
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        words w;
        __builtin_memcpy(&w, x + 64 * i, sizeof w);
        w ^= sign;
        code[i] = w & mask;
        code[4 + i] = (w >> 4) & mask;
      }
    }
  }
  /// Elements Odd, 2 + Odd, 4 + Odd and 6 + Odd of each row, 128 larger, where an element has the bytes of 16 rows.
  template <int Odd, int... K> ISOTOPE_INLINE static words fours(const bytes& low, const bytes& high, std::integer_sequence<int, K...>) {
    const bytes some = __builtin_shufflevector(low, high, (K % 4 / 2 * 64 + K % 2 * 32 + Odd * 16 + K / 4)...);
    return reinterpret_cast<words>(some) ^ std::int32_t(0x80808080);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
