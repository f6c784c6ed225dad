#pragma once
/// Weights in 8 or 4 bits. Each block of 32 elements along K has a scale in f16; an element is its scale times a small integer, exact in f32.
///
/// q8_0: d = max|x| / 127, code round(x / d) from -127 to 127, halves away from zero. q4_0: d = m / -8, where m is the element of largest magnitude (the first of
/// equals), code min(15, trunc(x / d + 8.5)) - 8 from -8 to 7. Codes are computed with d in f32, and then d is rounded to f16.
/// Files store a block as d and its codes, 34 or 18 bytes; byte i of a q4_0 block has 8 + the codes of elements i (low half) and 16 + i.
///
/// In memory, a weight (N, K) is made of panels of 16 rows, one block of each row after another, so that vectors hold a column of rows: a record has the 16
/// scales, then the codes. In q8_0, byte 16 j + r has the code of element j of row r. In q4_0, the 32-bit little-endian word 16 w + r has the codes of elements
/// w, 4 + w, 8 + w, ... of row r, the first in its lowest bits: 8 + code, but the last one is the code itself in two's complement. The last panel is padded.
#include <bit>
#include <cstddef>
#include <cstdint>

#include "precision.hpp"
#include "shape.hpp"

namespace isotope::quantized {

inline constexpr std::int64_t block = 32, panel_rows = 16;

/// Bytes of a block, in a file or in a record.
constexpr std::int64_t block_bytes(dtype t) { return t == dtype::q4_0 ? 18 : 34; }
constexpr std::int64_t record_bytes(dtype t) { return panel_rows * block_bytes(t); }
/// Bytes of a weight (N, K) in memory.
constexpr std::int64_t bytes_of(dtype t, std::int64_t N, std::int64_t K) {
  return (N + panel_rows - 1) / panel_rows * (K / block) * record_bytes(t);
}
/// The same for a weight, or for its transpose (K, N).
constexpr std::int64_t bytes_of(dtype t, const shape& dims, const extents& strides) {
  return strides[1] == 1 ? bytes_of(t, dims[0], dims[1]) : bytes_of(t, dims[1], dims[0]);
}

/// The largest magnitude whose scale is finite in f16.
constexpr float largest(dtype t) { return (t == dtype::q4_0 ? 8.0f : 127.0f) * 65504.0f; }

/// A block as it is computed with: element j is code[j] times float(scale).
struct values {
  float16 scale;
  std::int8_t code[block] = {};

  constexpr float operator[](std::int64_t j) const { return float(scale) * float(code[j]); }
  friend constexpr bool operator==(const values&, const values&) = default;
};

/// Quantises 32 finite numbers.
template <class E> constexpr values quantize(dtype t, const E* x) {
  float most = 0, signed_most = 0;
  for (std::int64_t j = 0; j < block; ++j)
    if (const float v = float(x[j]), size = v < 0 ? -v : v; size > most) {
      most = size;
      signed_most = v;
    }
  const bool four = t == dtype::q4_0;
  const float d = four ? signed_most / -8.0f : most / 127.0f;
  values r;
  r.scale = float16(d);
  for (std::int64_t j = 0; j < block && d != 0; ++j) {
    const float y = float(x[j]) / d;
    if (four) {
      const int code = int(y + 8.5f);
      r.code[j] = std::int8_t((code > 15 ? 15 : code) - 8);
    } else {
      // Halves are found exactly: y - trunc(y) has no rounding error.
      const int whole = int(y);
      const float rest = y - float(whole);
      r.code[j] = std::int8_t(whole + (rest >= 0.5f ? 1 : rest <= -0.5f ? -1 : 0));
    }
  }
  return r;
}

/// a8: activations of a product with such a weight, rounded to 8 bits. Each 32 along K have a scale d = max|x| / 127 in f32 and codes round(x / d), halves to
/// even, from -127 to 127; an element becomes d times its code. All elements of a block with a number that is not finite become NaN.
struct rounded_block {
  float scale = 0;
  std::int8_t code[block] = {};

  /// Element j, in f64 exactly.
  constexpr double operator[](std::int64_t j) const { return double(scale) * code[j]; }
};
/// Rounds 32 numbers as a8 does.
template <class E> constexpr rounded_block round_activations(const E* x) {
  constexpr float whole = 0x1.8p23f;  // y + whole has no bits below 1, so the sum is rounded to an integer
  float most = 0, poison = 0;
  for (std::int64_t j = 0; j < block; ++j) {
    const float v = float(x[j]), size = v < 0 ? -v : v;
    most = size > most ? size : most;
    poison += v * 0.0f;
  }
  rounded_block r;
  r.scale = most / 127.0f + poison;
  for (std::int64_t j = 0; j < block && r.scale > 0; ++j) {
    const float y = float(x[j]) / r.scale, limited = y > 127 ? 127 : y < -127 ? -127 : y;
    r.code[j] = std::int8_t((limited + whole) - whole);
  }
  return r;
}

/// Where the block of row n and elements k to k + 31 is: its record, and the row in that.
constexpr std::int64_t record_at(dtype t, std::int64_t K, std::int64_t n, std::int64_t k) {
  return (n / panel_rows * (K / block) + k / block) * record_bytes(t);
}
/// The byte of a record in which a code of q4_0 is.
constexpr std::int64_t half_byte_at(std::int64_t row, std::int64_t j) { return 2 * panel_rows + 4 * (j % 4 * panel_rows + row) + j / 8; }

/// Stores a block as row `row` of a record.
inline void put(dtype t, const values& from, std::byte* record, std::int64_t row) {
  record[2 * row] = std::byte(from.scale.bits & 0xff);
  record[2 * row + 1] = std::byte(from.scale.bits >> 8);
  for (std::int64_t j = 0; j < block; ++j) {
    if (t == dtype::q8_0) {
      record[2 * panel_rows + panel_rows * j + row] = std::byte(from.code[j]);
      continue;
    }
    const bool high = j / 4 % 2 != 0;
    const auto code = std::uint8_t((j < 28 ? from.code[j] + 8 : from.code[j]) & 15);
    std::byte& at = record[half_byte_at(row, j)];
    at = high ? (at & std::byte(0x0f)) | std::byte(code << 4) : (at & std::byte(0xf0)) | std::byte(code);
  }
}
/// Returns the block in row `row` of a record.
inline values get(dtype t, const std::byte* record, std::int64_t row) {
  values r;
  r.scale.bits = std::uint16_t(std::uint16_t(record[2 * row]) | std::uint16_t(record[2 * row + 1]) << 8);
  for (std::int64_t j = 0; j < block; ++j) {
    if (t == dtype::q8_0) {
      r.code[j] = std::int8_t(record[2 * panel_rows + panel_rows * j + row]);
      continue;
    }
    const auto pair = std::uint8_t(record[half_byte_at(row, j)]);
    const int code = j / 4 % 2 != 0 ? pair >> 4 : pair & 15;
    r.code[j] = std::int8_t(j < 28 ? code - 8 : code < 8 ? code : code - 16);
  }
  return r;
}

/// Quantises elements first to first + n - 1 of a weight (N, K) in row-major order into its memory; both are multiples of 32.
template <class E> void store(dtype t, const E* x, std::int64_t first, std::int64_t n, std::int64_t K, std::byte* to) {
  for (std::int64_t i = 0; i < n; i += block) {
    const std::int64_t row = (first + i) / K, k = (first + i) % K;
    put(t, quantize(t, x + i), to + record_at(t, K, row, k), row % panel_rows);
  }
}
/// y[j] = element (row, k + j) of a weight with rows of K elements, for j < n.
inline void read_row(dtype t, const std::byte* weight, std::int64_t K, std::int64_t row, std::int64_t k, std::int64_t n, float* y) {
  for (std::int64_t j = 0; j < n;) {
    const values b = get(t, weight + record_at(t, K, row, k + j), row % panel_rows);
    for (std::int64_t i = (k + j) % block; i < block && j < n; ++i, ++j) y[j] = b[i];
  }
}
/// Element (row, k).
inline float element(dtype t, const std::byte* weight, std::int64_t K, std::int64_t row, std::int64_t k) {
  float x = 0;
  read_row(t, weight, K, row, k, 1, &x);
  return x;
}

/// Writes a block as files have it: block_bytes(t) bytes.
inline void put_in_file(dtype t, const values& from, std::byte* to) {
  to[0] = std::byte(from.scale.bits & 0xff);
  to[1] = std::byte(from.scale.bits >> 8);
  for (std::int64_t j = 0; j < (t == dtype::q8_0 ? block : block / 2); ++j)
    to[2 + j] = t == dtype::q8_0 ? std::byte(from.code[j]) : std::byte(from.code[j] + 8) | std::byte((from.code[j + 16] + 8) << 4);
}
/// Reads a block of a file.
inline values get_from_file(dtype t, const std::byte* from) {
  values r;
  r.scale.bits = std::uint16_t(std::uint16_t(from[0]) | std::uint16_t(from[1]) << 8);
  for (std::int64_t j = 0; j < block; ++j) {
    if (t == dtype::q8_0) r.code[j] = std::int8_t(from[2 + j]);
    else r.code[j] = std::int8_t((j < 16 ? std::uint8_t(from[2 + j]) & 15 : std::uint8_t(from[2 + j - 16]) >> 4) - 8);
  }
  return r;
}

}  // namespace isotope::quantized
