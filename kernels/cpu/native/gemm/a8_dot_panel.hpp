#pragma once
/// As portable::a8_columns, with the same bits, by products of four unsigned and four signed bytes (vpdpbusd), 16 rows of the weight at a time.
///
/// Bound by the bytes of the weight for one row. Codes of the weight are unsigned here, those of q8_0 larger by 128, those of q4_0 by 8; sums begin with minus what is
/// thereby too much.
#include <isotope/kernels/cpu/native/gemm/a8_round.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_tiles.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Needs config::has_byte_dots and vectors of 16 f32.
class a8_dot_panel {
 public:
  /// As portable::a8_panels::make, for r < Rows and s < Streams.
  template <dtype Type, int Rows, int Streams>
  ISOTOPE_NOINLINE static void columns(const portable::a8_block* a, std::int64_t lda, const std::byte* record, std::int64_t apart,
                                       std::int64_t blocks, float* tile, std::int64_t ld, std::int64_t tile_apart) {
    constexpr std::int64_t size = quantized::record_bytes(Type);
    vector total[Streams][Rows] = {}, part[Streams][Rows] = {};
    for (std::int64_t b = 0; b < blocks; ++b, record += size) {
#pragma GCC unroll 4
      for (int s = 0; s < Streams; ++s) {
        const std::byte* at = record + s * apart;
        if constexpr (Streams > 1)
          for (std::int64_t line = 0; line < size; line += 64) __builtin_prefetch(at + ahead + line, 0, 3);
        const vector scale = load_vector(reinterpret_cast<const float16*>(at)), zero = scale - scale;  // NaN where the scale is not finite
        integers sum[Rows];
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) sum[r] = integers{} + a[r * lda + b].offset;
        a8_each_line<Type, false>(at + 2 * quantized::panel_rows, [&](int k, const auto& line) ISOTOPE_INLINE_LAMBDA {
#pragma GCC unroll 2
          for (int r = 0; r < Rows; ++r) isa::add_products_with_word(sum[r], reinterpret_cast<integers>(line), a[r * lda + b].code + 4 * k);
        });
#pragma GCC unroll 2
        for (int r = 0; r < Rows; ++r) {
          const auto product = isa::fma_lanes(vector(__builtin_convertvector(sum[r], vector)), scale, zero);
          part[s][r] = isa::fma_lanes(product, a[r * lda + b].scale - vector{}, part[s][r]);
        }
      }
      if (b % portable::a8_joined == portable::a8_joined - 1)
        for (int s = 0; s < Streams; ++s)
          for (int r = 0; r < Rows; ++r) total[s][r] += part[s][r], part[s][r] = vector{};
    }
    for (int s = 0; s < Streams; ++s)
      for (int r = 0; r < Rows; ++r) {
        const vector y = total[s][r] + part[s][r];
        __builtin_memcpy(tile + r * ld + s * tile_apart, &y, sizeof y);
      }
  }

 private:
  static constexpr std::int64_t ahead = 1152;  // bytes from a load to the prefetch of the same stream: 2 records of q8_0, 4 of q4_0
  using integers __attribute__((vector_size(64))) = std::int32_t;
};

template <dtype Type, int Streams>
inline constexpr portable::a8_panels::of_format a8_dot_panels_of = {
    &a8_dot_panel::columns<Type, 1, Streams>, &a8_dot_panel::columns<Type, 2, 1>, &a8_round::row<Type, a8_tile_order>};
/// @tparam Streams  panels that are read at once for one row
template <int Streams>
inline constexpr portable::a8_panels a8_dot_panels = {a8_dot_panels_of<dtype::q8_0, Streams>,
                                                      a8_dot_panels_of<dtype::q4_0, Streams>,
                                                      2,
                                                      Streams,
                                                      &a8_tile_order::excess,
                                                      &a8_tile_order::place};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
