#pragma once
/// Unpacks weights in blocks (core/quantized.hpp) into panels of f32, for gemms of many rows. Bound by conversions; a column of 16 rows is contiguous.
#include <cstring>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/core/quantized.hpp>
#include <isotope/kernels/cpu/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// A weight (N, K) in blocks.
struct block_weight {
  dtype type;
  const std::byte* data;
  std::int64_t N, K;

  block_weight(dtype t, const std::byte* at, std::int64_t rows, std::int64_t cols) : type(t), data(at), N(rows), K(cols) {}
  explicit block_weight(const view& transposed)
      : block_weight(transposed.type, transposed.as<const std::byte>(), transposed.dims[1], transposed.dims[0]) {}
  static block_weight of(const view& w) { return {w.type, w.as<const std::byte>(), w.dims[0], w.dims[1]}; }
  const std::byte* record(std::int64_t n, std::int64_t k) const { return data + quantized::record_at(type, K, n, k); }
};

using code_words __attribute__((vector_size(64))) = std::int32_t;
/// v[r] = the code of element j in row r of a record.
ISOTOPE_INLINE void load_code_words(dtype t, const std::byte* record, std::int64_t j, code_words& v) {
  using bytes __attribute__((vector_size(16))) = std::int8_t;
  record += 2 * quantized::panel_rows;
  if (t == dtype::q8_0) {
    bytes b;
    std::memcpy(&b, record + quantized::panel_rows * j, sizeof b);
    v = __builtin_convertvector(b, code_words);
    return;
  }
  code_words w;
  std::memcpy(&w, record + 64 * (j % 4), sizeof w);
  w = w << std::int32_t(28 - j / 4 * 4) >> 28;  // as a code of two's complement
  v = j < 28 ? (w & 15) - 8 : w;
}
ISOTOPE_INLINE void load_codes(dtype t, const std::byte* record, std::int64_t j, sixteen& v) {
  code_words w;
  load_code_words(t, record, j, w);
  v = __builtin_convertvector(w, sixteen);
}

/// Rounds each number to bf16.
ISOTOPE_INLINE void round_elements(sixteen& v) {
  using bits __attribute__((vector_size(64))) = std::uint32_t;
  bits u;
  std::memcpy(&u, &v, sizeof u);
  const bits even = u + 0x7fffu + (u >> 16 & 1u);
  u = ((u & 0x7fff'ffffu) > 0x7f80'0000u ? u | 0x40'0000u : even) & 0xffff'0000u;  // NaN stays NaN
  std::memcpy(&v, &u, sizeof u);
}

/// y[j width + c] = element (n + c, k0 + j) of the weight, for j < k and c < cols; 0 for cols <= c < width.
///
/// @param n      a multiple of 16, or of the width
/// @param width  at most 16, or a multiple of 16
/// @param rounds  elements are rounded to bf16, as beside activations of bf16
inline void unpack_panel(const block_weight& w, std::int64_t n, std::int64_t cols, std::int64_t k0, std::int64_t k, std::int64_t width,
                         float* y, bool rounds) {
  constexpr std::int64_t rows = quantized::panel_rows;
  const std::int64_t piece = width < rows ? width : rows;
  for (std::int64_t c = 0; c < width; c += piece) {
    const std::int64_t some = cols - c < piece ? (cols > c ? cols - c : 0) : piece, skip = (n + c) % rows;
    sixteen scale{};
    const std::byte* record = nullptr;
    for (std::int64_t j = 0; j < k; ++j) {
      float values[rows] = {};
      if (some > 0) {
        if (record == nullptr || (k0 + j) % quantized::block == 0) {
          record = w.record(n + c, k0 + j);
          load_sixteen(reinterpret_cast<const float16*>(record), scale);
        }
        sixteen v;
        load_codes(w.type, record, (k0 + j) % quantized::block, v);
        v *= scale;
        if (rounds) round_elements(v);
        std::memcpy(values, &v, sizeof v);
      }
      float* to = y + j * width + c;
      for (std::int64_t i = 0; i < piece; ++i) to[i] = i < some ? values[skip + i] : 0.0f;
    }
  }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
