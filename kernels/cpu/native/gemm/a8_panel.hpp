#pragma once
/// As portable::a8_columns, with the same bits, by products of unsigned and signed bytes. Bound by bytes of the weight for one row, then by multiplications.
///
/// In records, bytes of one row of the weight are 16 apart (q8_0); two steps of interleaving bring four elements of a row together. An unsigned byte is the
/// magnitude of the weight, whose sign goes to the activation: so sums of two products fit into 16 bits. Codes of q4_0 are together as they lie: 8 + code is
/// unsigned, a sum of 16 products fits into 16 bits, and 8 times the sum of the activations is subtracted at the end.
#include <isotope/kernels/cpu/native/gemm/a8_round.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

class a8_panel {
 public:
  /// As portable::a8_panels::make, for r < Rows and s < Streams.
  template <dtype Type, int Rows, int Streams>
  ISOTOPE_NOINLINE static void columns(const portable::a8_block* a, std::int64_t lda, const std::byte* record, std::int64_t apart,
                                       std::int64_t blocks, float* tile, std::int64_t ld, std::int64_t tile_apart) {
    constexpr std::int64_t size = quantized::record_bytes(Type);
    eight total[Streams][Rows][2] = {}, part[Streams][Rows][2] = {};
    for (std::int64_t b = 0; b < blocks; ++b, record += size) {
#pragma GCC unroll 1
      for (int s = 0; s < Streams; ++s) {
        const std::byte* at = record + s * apart;
        eight scale[2], zero[2];  // NaN where the scale is not finite
        for (int v = 0; v < 2; ++v) {
          halves h;
          __builtin_memcpy(&h, at + 16 * v, sizeof h);
          isa::convert_halves(scale[v], h);
          zero[v] = scale[v] - scale[v];
        }
        words sum[Rows][2];
        if constexpr (Type == dtype::q8_0) {
          sum_bytes<Rows>(a + b, lda, at + 32, sum);
        } else {
          sum_half_bytes<Rows>(a + b, lda, at + 32, sum);
        }
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r)
          for (int v = 0; v < 2; ++v) {
            eight product;
            isa::fma_lanes(product, eight(__builtin_convertvector(sum[r][v], eight)), scale[v], zero[v]);
            isa::fma_lanes(part[s][r][v], product, eight(a[r * lda + b].scale - eight{}), part[s][r][v]);
          }
      }
      if (b % portable::a8_joined == portable::a8_joined - 1)
#pragma GCC unroll 1
        for (int s = 0; s < Streams; ++s)
          for (int r = 0; r < Rows; ++r)
            for (int v = 0; v < 2; ++v) total[s][r][v] += part[s][r][v], part[s][r][v] = eight{};
    }
#pragma GCC unroll 1
    for (int s = 0; s < Streams; ++s)
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < 2; ++v) {
          const eight y = total[s][r][v] + part[s][r][v];
          __builtin_memcpy(tile + r * ld + s * tile_apart + 8 * v, &y, sizeof y);
        }
  }

 private:
  static constexpr std::int64_t ahead =
      1152;  // bytes from a load to the prefetch beside it, of the same stream: 2 records of q8_0, 4 of q4_0
  using eight __attribute__((vector_size(32))) = float;
  using words __attribute__((vector_size(32))) = std::int32_t;
  using pairs __attribute__((vector_size(32))) = std::int16_t;
  using bytes __attribute__((vector_size(32))) = std::int8_t;
  using halves __attribute__((vector_size(16))) = std::uint16_t;

  /// sum[r] = the products of codes of q8_0 of a record and those of rows r < Rows.
  template <int Rows>
  ISOTOPE_INLINE static void sum_bytes(const portable::a8_block* a, std::int64_t lda, const std::byte* codes, words (*sum)[2]) {
    words by_parity[Rows][4] = {};  // four rows of the weight each: of even elements, then of odd ones
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      __builtin_prefetch(codes + 128 * g + ahead, 0, 3);
      __builtin_prefetch(codes + 128 * g + 64 + ahead, 0, 3);
      bytes q[4];
      __builtin_memcpy(q, codes + 128 * g, sizeof q);
      pairs low01, high01, low23, high23;
      isa::interleave_bytes(low01, high01, q[0], q[1]);
      isa::interleave_bytes(low23, high23, q[2], q[3]);
      words w[4];
      isa::interleave_pairs(w[0], w[1], low01, low23);
      isa::interleave_pairs(w[2], w[3], high01, high23);
      words x[Rows];
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
        words even, odd;
        isa::broadcast_word(even, a[r * lda].code + 8 * g);
        isa::broadcast_word(odd, a[r * lda].code + 8 * g + 4);
        x[r] = __builtin_shufflevector(even, odd, 0, 1, 2, 3, 12, 13, 14, 15);
      }
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        words size, factor;
        isa::magnitudes_of_bytes(size, w[v]);
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) {
          isa::give_signs_of_bytes(factor, x[r], w[v]);
          isa::add_products_of_bytes(by_parity[r][v], size, factor);
        }
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const words p = by_parity[r][2 * v], q = by_parity[r][2 * v + 1];
        sum[r][v] = __builtin_shufflevector(p, q, 0, 1, 2, 3, 8, 9, 10, 11) + __builtin_shufflevector(p, q, 4, 5, 6, 7, 12, 13, 14, 15);
      }
  }

  /// The same for q4_0.
  template <int Rows>
  ISOTOPE_INLINE static void sum_half_bytes(const portable::a8_block* a, std::int64_t lda, const std::byte* codes, words (*sum)[2]) {
    const words mask = words{} + 0x0f0f0f0f, sign = words{} + std::int32_t(0x80000000);  // the highest code is in two's complement
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      isa::byte_products<words, pairs> products[Rows];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (v == 0) __builtin_prefetch(codes + 64 * i + ahead, 0, 3);
        words w;
        __builtin_memcpy(&w, codes + 64 * i + 32 * v, sizeof w);
        w ^= sign;
        const words low = w & mask, high = (w >> 4) & mask;
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          words x;
          isa::broadcast_word(x, a[r * lda].code + 4 * i);
          products[r].add(low, x);
          isa::broadcast_word(x, a[r * lda].code + 4 * (4 + i));
          products[r].add(high, x);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        products[r].sum(sum[r][v]);
        sum[r][v] += a[r * lda].offset;
      }
    }
  }
};

template <dtype Type>
inline constexpr portable::a8_panels::of_format a8_panels_of = {&a8_panel::columns<Type, 1, 4>, &a8_panel::columns<Type, 2, 1>,
                                                                &a8_round::row<Type>};
/// One row is bound by bytes, which come faster in four streams; sums of two rows fill the registers.
inline constexpr portable::a8_panels a8_panels = {a8_panels_of<dtype::q8_0>, a8_panels_of<dtype::q4_0>, 2, 4,
                                                  &a8_order::excess,         &a8_order::place};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
