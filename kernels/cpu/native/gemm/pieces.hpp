#pragma once
/// f32 numbers as sums of three bf16 numbers, in the order in which a matrix unit loads them.
///
/// x = high + middle + low: `high` is x rounded to bf16, `middle` is the rest cut to 8 bits, and 8 bits are left for `low`. All of it is exact while low, at least
/// 2^-23 of the power of two below |x|, is a normal number: for |x| >= 2^-103. A tile has 32 terms of K: terms j and j + 16 of a row or column are a pair, so that
/// pairs are made without shuffles. Bound by stores: 8 instructions for 16 numbers, and 96 bytes.
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Sizes of a tile, and the place of its pieces: those of tile t of K are three planes, high, middle and low, of as many tiles as the strip or panel has.
struct piece_tiles {
  static constexpr std::int64_t rows = 16, terms = 32, size = rows * terms, planes = 3;
};

/// Writes the pieces of a pair of vectors: words of (x[j], y[j]) to `to`, `to + plane` and `to + 2 plane`.
ISOTOPE_INLINE void split_pair(const vector& x, const vector& y, bfloat16* to, std::int64_t plane) {
  static_assert(sizeof(words) == sizeof(vector));
  constexpr std::uint32_t upper = 0xffff'0000u;
  const auto bits = [](const vector& v) ISOTOPE_INLINE_LAMBDA { return std::bit_cast<words>(v); };
  const auto number = [](const words& u) ISOTOPE_INLINE_LAMBDA { return std::bit_cast<vector>(u); };
  const auto put = [&](const words& a, const words& b) ISOTOPE_INLINE_LAMBDA {
    const words both = (a >> 16) | (b & upper);
    __builtin_memcpy(static_cast<void*>(to), &both, sizeof both);
    to += plane;
  };
  const words high_x = (bits(x) + 0x8000u) & upper, high_y = (bits(y) + 0x8000u) & upper;
  put(high_x, high_y);
  const vector rest_x = x - number(high_x), rest_y = y - number(high_y);
  put(bits(rest_x), bits(rest_y));
  put(bits(rest_x - number(bits(rest_x) & upper)), bits(rest_y - number(bits(rest_y) & upper)));
}

/// Splits rows of A into tiles: pieces of x[i row_stride + k k_stride] for i < rows <= 16 tiles and k < terms, padded with zeros, with `tiles` tiles in a plane.
inline void split_rows(const float* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t rows, std::int64_t terms,
                       std::int64_t tiles, bfloat16* to) {
  using tile = piece_tiles;
  const std::int64_t plane = tiles * tile::size;
  alignas(64) float turned[tile::rows * tile::terms];
  for (std::int64_t k = 0; k < terms; k += tile::terms, to += tile::planes * plane)
    for (std::int64_t h = 0; h < tiles; ++h) {
      const std::int64_t high = smaller(tile::rows, rows - h * tile::rows), wide = smaller(tile::terms, terms - k);
      const float* from = x + h * tile::rows * row_stride + k * k_stride;
      std::int64_t ld = row_stride;
      if (k_stride != 1 || wide < tile::terms || high < tile::rows) {
        if (row_stride == 1 && high == tile::rows) {
          for (std::int64_t j = 0; j < tile::terms; j += lanes) {
            vector r[lanes] = {};
            for (std::int64_t i = 0; i < smaller(lanes, wide - j); ++i) __builtin_memcpy(&r[i], from + (j + i) * k_stride, sizeof r[i]);
            transpose(r);
            for (std::int64_t i = 0; i < lanes; ++i) __builtin_memcpy(turned + i * tile::terms + j, &r[i], sizeof r[i]);
          }
        } else {
          for (std::int64_t i = 0; i < tile::rows; ++i)
            for (std::int64_t j = 0; j < tile::terms; ++j)
              turned[i * tile::terms + j] = i < high && j < wide ? from[i * row_stride + j * k_stride] : 0;
        }
        from = turned;
        ld = tile::terms;
      }
      for (std::int64_t i = 0; i < tile::rows; ++i)
        split_pair(load_vector(from + i * ld), load_vector(from + i * ld + lanes), to + h * tile::size + i * tile::terms, plane);
    }
}

/// The magnitudes of the numbers of 16 columns: as bits, which are ordered as they are; `least` is that of nonzero numbers, less one.
struct column_range {
  words least = ~words{}, largest{};

  ISOTOPE_INLINE void take(const vector& x) {
    const words magnitude = std::bit_cast<words>(x) & 0x7fff'ffffu, but_zero = magnitude - 1;
    least = but_zero < least ? but_zero : least;
    largest = magnitude > largest ? magnitude : largest;
  }
};

/// What is known of the numbers of a column of B, so that sums can be checked.
///
/// The unit flushes numbers below 2^-126, and sums. If the column's pieces are normal, a sum of K terms loses at most K 2^-126 (largest + 8): for each term what A's
/// pieces lose, and 7 products and sums. Where that shows in f32, or a column has numbers whose pieces are not normal, sums are computed again.
struct column_bounds {
  static constexpr std::uint32_t tiny = (127u - 103) << 23, huge = 0x7f7f'8000u;  // below one and from the other on, pieces are not normal

  float* bound;  // sums from here on are right; infinite if none is
  float* least;  // the least magnitude but zero; infinite if all are zero

  void note(const column_range& r, std::int64_t K, std::int64_t column) const {
    for (std::int64_t j = 0; j < lanes; ++j) {
      const std::uint32_t low = r.least[j] + 1, high = r.largest[j];
      const bool none = high == 0, normal = none || (low >= tiny && high < huge);
      bound[column + j] = none ? 0 : normal ? 0x1p-102f * float(K) * (std::bit_cast<float>(high) + 8) : __builtin_inff();
      least[column + j] = none ? __builtin_inff() : std::bit_cast<float>(low);
    }
  }
};

/// Splits 16 columns of B into a tile: pieces of x[k k_stride + j col_stride] for k < terms <= 32 and j < cols <= 16, padded with zeros.
/// @param range  numbers are taken into it
inline void split_columns(const float* x, std::int64_t k_stride, std::int64_t col_stride, std::int64_t terms, std::int64_t cols,
                          bfloat16* to, std::int64_t plane, column_range& range) {
  using tile = piece_tiles;
  alignas(64) float turned[tile::terms * lanes];
  if (col_stride != 1 || terms < tile::terms || cols < lanes) {
    pack_right(x, k_stride, col_stride, terms, cols, lanes, turned);
    for (std::int64_t i = terms * lanes; i < tile::terms * lanes; ++i) turned[i] = 0;
    x = turned;
    k_stride = lanes;
  }
  column_range seen = range;
  for (std::int64_t i = 0; i < tile::terms; ++i) seen.take(load_vector(x + i * k_stride));
  range = seen;
  for (std::int64_t i = 0; i < tile::terms / 2; ++i)
    split_pair(load_vector(x + i * k_stride), load_vector(x + (i + tile::terms / 2) * k_stride), to + i * tile::terms, plane);
}

/// The pieces of a weight (N, K) whose transpose is multiplied: panels of 32 rows of W, which are columns of its transpose, the last perhaps of 16, as the unit loads
/// them; then bounds and least magnitudes of the columns.
class weight_pieces {
 public:
  static constexpr std::int64_t cols = 2 * lanes;

  constexpr weight_pieces(std::int64_t N, std::int64_t K)
      : N_(N), K_(K), columns_(whole(N, lanes)), tiles_(divide_up(K, piece_tiles::terms)) {}
  /// Returns the size in f32 numbers.
  constexpr std::int64_t elements() const { return columns_ * tiles_ * piece_tiles::terms * piece_tiles::planes / 2 + 2 * columns_; }
  constexpr std::int64_t count() const { return divide_up(N_, cols); }
  /// Returns the vectors of 16 columns of panel p.
  constexpr std::int64_t vectors(std::int64_t p) const { return smaller(cols, columns_ - p * cols) / lanes; }
  /// Returns the place of tile t of K of panel p, in bf16 numbers.
  constexpr std::int64_t at(std::int64_t p, std::int64_t t) const {
    return piece_tiles::planes * piece_tiles::size * (p * 2 * tiles_ + t * vectors(p));
  }
  /// Returns what is known of the columns of panel p.
  column_bounds bounds(float* pieces, std::int64_t p) const {
    float* const after = pieces + elements() - 2 * columns_ + p * cols;
    return {after, after + columns_};
  }

  /// Splits panel p of a weight with contiguous rows.
  void pack(const float* w, std::int64_t p, float* pieces) const {
    auto* const to = reinterpret_cast<bfloat16*>(pieces) + at(p, 0);
    const std::int64_t plane = vectors(p) * piece_tiles::size;
    for (std::int64_t v = 0; v < vectors(p); ++v) {
      column_range range;
      const std::int64_t n = p * cols + v * lanes;
      for (std::int64_t t = 0; t < tiles_; ++t)
        split_columns(w + n * K_ + t * piece_tiles::terms, 1, K_, smaller(piece_tiles::terms, K_ - t * piece_tiles::terms),
                      smaller(lanes, N_ - n), to + t * piece_tiles::planes * plane + v * piece_tiles::size, plane, range);
      bounds(pieces, p).note(range, K_, v * lanes);
    }
  }

 private:
  std::int64_t N_, K_, columns_, tiles_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
