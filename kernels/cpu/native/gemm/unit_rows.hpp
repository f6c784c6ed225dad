#pragma once
/// Rows of an operand as a matrix unit loads them: a tile has 32 terms of 16 rows. Rows are read in place, or copied into tiles of 1 KB padded with
/// zeros.
///
/// Copying is bound by bytes where memory is contiguous along k, by shuffles where it is contiguous along the rows.
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// A[i, k] is at data[i / 16 half_stride + i % 16 row_stride + k / 32 tile_stride + k % 32], for at most two tiles of rows.
template <class Unit> struct unit_rows {
  static constexpr std::int64_t most = 2 * Unit::rows;
  const bfloat16* data = nullptr;
  std::int64_t row_stride = 0, half_stride = 0, tile_stride = 0;
  int least = -1, largest = -1;  // exponents, `least` of nonzero numbers; negative: unknown

  /// The pair of terms 2k and 2k + 1 of row i.
  const bfloat16* pair(std::int64_t i, std::int64_t k) const {
    return data + i / Unit::rows * half_stride + i % Unit::rows * row_stride + 2 * k / Unit::terms * tile_stride + 2 * k % Unit::terms;
  }
  /// Scans `rows` rows of `tiles` tiles.
  void find_exponents(std::int64_t rows, std::int64_t tiles) {
    exponents r;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t t = 0; t < tiles; ++t) r.take(pair(i, t * Unit::terms / 2), Unit::terms);
    least = r.least();
    largest = r.largest();
  }
};

template <class Unit> class unit_copy {
 public:
  static constexpr std::int64_t rows = unit_rows<Unit>::most;
  /// @param depth  length of a block of K in terms
  static constexpr std::int64_t floats(std::int64_t depth) { return head + rows * whole(depth, Unit::terms) / 2; }

  unit_copy(float* y, std::int64_t, bool along_k) : head_(y), y_(reinterpret_cast<bfloat16*>(y + head)), along_k_(along_k) {}
  /// Returns the rows that `fill` copied.
  unit_rows<Unit> tiles() const { return {y_, Unit::terms, tile, 2 * tile}; }
  /// Returns the rows that `take` copied, with their exponents.
  unit_rows<Unit> block() const { return {y_, Unit::terms, tile, 2 * tile, int(head_[0]), int(head_[1])}; }

  /// As `fill`, for rows that many panels reuse: scans their exponents once, so that those of the panels are not needed.
  void take(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t terms) const {
    fill(x, row_stride, k_stride, n, terms);
    exponents found;
    found.take(y_, whole(terms, Unit::terms) * rows);
    found.put(head_);
  }
  /// Copies x[i row_stride + k k_stride] for i < n <= rows, k < terms.
  void fill(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t terms) const {
    for (std::int64_t k = 0; k < terms; k += Unit::terms)
      for (std::int64_t i = 0; i < rows; i += Unit::rows) {
        const bfloat16* from = x + i * row_stride + k * k_stride;
        bfloat16* to = y_ + k / Unit::terms * 2 * tile + i / Unit::rows * tile;
        const std::int64_t high = smaller(Unit::rows, n - i), wide = smaller(Unit::terms, terms - k);
        if (high <= 0) clear(to, tile);
        else if (along_k_) take_rows(from, row_stride, high, wide, to);
        else if (row_stride == 1 && high == Unit::rows) take_columns(from, k_stride, wide, to);
        else take_some(from, row_stride, k_stride, high, wide, to);
      }
  }

  /// Copies a tile of 16 rows that are neighbours in memory as words of pairs, transposed in registers: x[i + k k_stride] for k < terms, then zeros.
  static void take_columns(const bfloat16* x, std::int64_t k_stride, std::int64_t terms, bfloat16* to) {
    static_assert(Unit::rows == lanes && Unit::terms == 2 * lanes);
    const bfloat16 none[lanes]{};
    vector r[lanes];
#pragma GCC unroll 16
    for (std::int64_t j = 0; j < lanes; ++j) {
      const bfloat16 *even = x + 2 * j * k_stride, *odd = even + k_stride;
      const words v = interleave(2 * j < terms ? even : none, 2 * j + 1 < terms ? odd : none);
      __builtin_memcpy(&r[j], &v, sizeof v);
    }
    transpose(r);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < lanes; ++i) __builtin_memcpy(static_cast<void*>(to + i * Unit::terms), &r[i], sizeof r[i]);
  }

 private:
  static constexpr std::int64_t head = 16;  // in floats: a cache line
  static constexpr std::int64_t tile = Unit::rows * Unit::terms;
  static void clear(bfloat16* to, std::int64_t n) {
    if (n > 0) __builtin_memset(static_cast<void*>(to), 0, std::size_t(n) * sizeof *to);
  }
  static void take_rows(const bfloat16* x, std::int64_t row_stride, std::int64_t n, std::int64_t terms, bfloat16* to) {
    if (terms == Unit::terms) {
      for (std::int64_t i = 0; i < n; ++i) {
        words v;
        __builtin_memcpy(&v, x + i * row_stride, sizeof v);
        __builtin_memcpy(static_cast<void*>(to + i * Unit::terms), &v, sizeof v);
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        __builtin_memcpy(static_cast<void*>(to + i * Unit::terms), x + i * row_stride, std::size_t(terms) * sizeof *x);
        clear(to + i * Unit::terms + terms, Unit::terms - terms);
      }
    }
    clear(to + n * Unit::terms, (Unit::rows - n) * Unit::terms);
  }
  static void take_some(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t terms,
                        bfloat16* to) {
    for (std::int64_t i = 0; i < Unit::rows; ++i)
      for (std::int64_t k = 0; k < Unit::terms; ++k)
        to[i * Unit::terms + k] = i < n && k < terms ? x[i * row_stride + k * k_stride] : bfloat16();
  }

  float* head_;
  bfloat16* y_;
  bool along_k_;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
