#pragma once
/// Packs bf16 operands for the microkernel of pairs: a 32-bit word holds the terms 2k and 2k + 1 of a row or column, in the place of an f32. If the
/// number of terms is odd, the second term of the last word is zero.
///
/// Where memory is contiguous along k, a word is copied unchanged, so a panel costs the shuffles of an f32 panel of half its length; elsewhere two
/// rows are interleaved.
#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

using words __attribute__((vector_size(config::vector_bytes))) = std::uint32_t;
using rounded_vector __attribute__((vector_size(config::vector_bytes / 2))) = std::uint16_t;
using halves __attribute__((vector_size(config::vector_bytes))) = std::uint16_t;

template <int... J>
ISOTOPE_INLINE halves interleave(const rounded_vector& low, const rounded_vector& high, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(low, high, (J / 2 + J % 2 * int(lanes))...);
}
/// The pairs (low[j], high[j]).
ISOTOPE_INLINE words interleave(const rounded_vector& low, const rounded_vector& high) {
  const halves pairs = interleave(low, high, std::make_integer_sequence<int, 2 * int(lanes)>{});
  words v;
  __builtin_memcpy(&v, &pairs, sizeof v);
  return v;
}
/// The pairs (a[j], b[j]) for j < lanes.
ISOTOPE_INLINE words interleave(const bfloat16* a, const bfloat16* b) {
  rounded_vector low, high;
  __builtin_memcpy(&low, a, sizeof low);
  __builtin_memcpy(&high, b, sizeof high);
  return interleave(low, high);
}
/// Rounds v to bf16, as bfloat16 does.
ISOTOPE_INLINE rounded_vector rounded(const vector& v) {
  words u;
  __builtin_memcpy(&u, &v, sizeof u);
  return __builtin_convertvector(math::bf16_lanes::rounded(u) >> 16, rounded_vector);
}
/// Keeps the smaller magnitude in `least`, lane by lane. NaN loses against a number.
ISOTOPE_INLINE void keep_least(vector& least, const vector& v) {
  if constexpr (config::has_bf16_pairs) {
    isa::keep_least_magnitude(least, v);
  } else {
    words u, m;
    __builtin_memcpy(&u, &v, sizeof u);
    __builtin_memcpy(&m, &least, sizeof m);
    u &= 0x7fff'ffffu;
    m = u < m ? u : m;
    __builtin_memcpy(&least, &m, sizeof m);
  }
}
/// Rounds v by the processor's instruction, which flushes subnormal numbers to zero; `least` keeps the smallest magnitude.
ISOTOPE_INLINE rounded_vector rounded_quickly(const vector& v, vector& least) {
  keep_least(least, v);
  if constexpr (config::has_bf16_pairs) {
    rounded_vector y{};
    isa::round_to_bf16(y, v);
    return y;
  } else {
    return rounded(v);
  }
}
/// Whether some number is below `bound`.
ISOTOPE_INLINE bool any_below(const vector& v, float bound) {
  const auto below = v < bound;
  std::uint64_t parts[lanes / 2], any = 0;
  __builtin_memcpy(parts, &below, sizeof parts);
  for (const std::uint64_t two : parts) any |= two;
  return any != 0;
}
constexpr std::uint32_t pair_of(bfloat16 a, bfloat16 b) { return std::uint32_t(a.bits) | std::uint32_t(b.bits) << 16; }

/// Collects the range of exponents of bf16 numbers, as stored: biased by 127.
class exponents {
 public:
  void take(const bfloat16* x, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      halves v;
      __builtin_memcpy(&v, x + i, sizeof v);
      add(v);
    }
    if (i == n) return;
    halves v{};
    __builtin_memcpy(&v, x + i, std::size_t(n - i) * sizeof *x);
    add(v);
  }
  void take(const words& pairs) {
    halves v;
    __builtin_memcpy(&v, &pairs, sizeof v);
    add(v);
  }
  /// Returns the least exponent of nonzero numbers: 0 if one is subnormal, 512 without numbers.
  int least() const {
    std::uint16_t r = 0xffff;
    for (int i = 0; i < 2 * int(lanes); ++i) r = least_[i] < r ? least_[i] : r;
    return (int(r) + 1) >> 7;
  }
  int largest() const {
    std::uint16_t r = 0;
    for (int i = 0; i < 2 * int(lanes); ++i) r = largest_[i] > r ? largest_[i] : r;
    return int(r) >> 7;
  }
  /// Stores both to the first two floats before a packed operand.
  void put(float* head) const { head[0] = float(least()), head[1] = float(largest()); }

 private:
  ISOTOPE_INLINE void add(const halves& v) {
    const halves magnitude = v & 0x7fff, but_zero = magnitude - 1;  // that of zero becomes the largest
    least_ = but_zero < least_ ? but_zero : least_;
    largest_ = magnitude > largest_ ? magnitude : largest_;
  }
  halves least_ = ~halves{}, largest_{};
};

/// Rows of pairs: A[i, 2k] and A[i, 2k + 1] at data[i row_stride + k pair_stride].
struct pair_rows {
  const bfloat16* data = nullptr;
  std::int64_t row_stride = 0, pair_stride = 0;
  int least = -1, largest = -1;  // exponents, `least` of nonzero numbers; negative: unknown

  /// The pair of terms 2k and 2k + 1 of row i.
  const bfloat16* pair(std::int64_t i, std::int64_t k) const { return data + i * row_stride + k * pair_stride; }
  /// Scans `rows` rows of `steps` pairs.
  void find_exponents(std::int64_t rows, std::int64_t steps) {
    exponents r;
    if (pair_stride == 2) {
      for (std::int64_t i = 0; i < rows; ++i) r.take(data + i * row_stride, 2 * steps);
    } else {
      r.take(data, pair_stride * steps);
    }
    least = r.least();
    largest = r.largest();
  }
};

/// As row_copy, for pairs: rows contiguous along k, or one pair after another. Missing rows become zeros.
class pair_copy {
 public:
  /// @param depth  length of a block of K in terms
  static constexpr std::int64_t floats(std::int64_t depth) { return row_copy::floats(divide_up(depth, 2)); }

  pair_copy(float* y, std::int64_t depth, bool along_k)
      : y_(reinterpret_cast<bfloat16*>(y)), stride_(2 * row_copy::stride(divide_up(depth, 2))), along_k_(along_k) {}
  pair_rows block() const { return along_k_ ? pair_rows{y_, stride_, 2} : pair_rows{y_, 2, 2 * blocking::rows}; }

  /// Takes x[i row_stride + k k_stride] for i < rows <= blocking::rows, k < terms.
  void take(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t rows, std::int64_t terms) const {
    if (along_k_) {
      for (std::int64_t i = 0; i < rows; ++i) {
        __builtin_memcpy(static_cast<void*>(y_ + i * stride_), x + i * row_stride, std::size_t(terms) * sizeof *x);
        if (terms % 2 != 0) y_[i * stride_ + terms] = bfloat16();
      }
      return;
    }
    std::int64_t k = 0;
    if (row_stride == 1 && rows == blocking::rows && k_stride >= lanes) {
      // The next vector overwrites what a vector has too much. Only the last k is copied singly, because the memory behind it may not be readable.
      for (; k + 2 < terms; k += 2)
        for (std::int64_t i = 0; i < blocking::rows; i += lanes) {
          const words v = interleave(x + k * k_stride + i, x + (k + 1) * k_stride + i);
          __builtin_memcpy(static_cast<void*>(y_ + k * blocking::rows + 2 * i), &v, sizeof v);
        }
    }
    for (; k < terms; k += 2)
      for (std::int64_t i = 0; i < blocking::rows; ++i)
        for (std::int64_t t = 0; t < 2; ++t)
          y_[k * blocking::rows + 2 * i + t] = i < rows && k + t < terms ? x[i * row_stride + (k + t) * k_stride] : bfloat16();
  }

 private:
  bfloat16* y_;
  std::int64_t stride_;
  bool along_k_;
};

/// Packs a panel of B: the pair of terms 2k and 2k + 1 of column j goes to y[k width + j], j < width.
///
/// @param x      B[k, j] at x[k k_stride + j col_stride], k < terms, j < cols
/// @param cols   at most width, a multiple of lanes; the other columns become zeros
inline void pack_pairs(const bfloat16* x, std::int64_t k_stride, std::int64_t col_stride, std::int64_t terms, std::int64_t cols,
                       std::int64_t width, float* y) {
  const std::int64_t pairs = terms / 2, whole = cols / lanes * lanes;
  std::int64_t done = 0, from = 0;  // pairs done, and columns done of these pairs
  if (col_stride == 1) {
    for (; done < pairs; ++done)
      for (std::int64_t j = 0; j < whole; j += lanes) {
        const words v = interleave(x + 2 * done * k_stride + j, x + (2 * done + 1) * k_stride + j);
        __builtin_memcpy(y + done * width + j, &v, sizeof v);
      }
    from = whole;
  } else if (k_stride == 1) {
    for (; done + lanes <= pairs; done += lanes)
      for (std::int64_t j = 0; j < width; j += lanes) {
        vector r[lanes] = {};
        const std::int64_t have = smaller(lanes, cols - j);
        if (have == lanes) {
#pragma GCC unroll 16
          for (int i = 0; i < int(lanes); ++i) __builtin_memcpy(&r[i], x + (j + i) * col_stride + 2 * done, sizeof r[i]);
        } else {
          for (std::int64_t i = 0; i < have; ++i) __builtin_memcpy(&r[i], x + (j + i) * col_stride + 2 * done, sizeof r[i]);
        }
        transpose(r);
#pragma GCC unroll 16
        for (int i = 0; i < int(lanes); ++i) __builtin_memcpy(y + (done + i) * width + j, &r[i], sizeof r[i]);
      }
    from = width;
  }
  for (std::int64_t k = from == width ? done : 0; k < divide_up(terms, 2); ++k)
    for (std::int64_t j = k < done ? from : 0; j < width; ++j) {
      const bfloat16* at = x + 2 * k * k_stride + j * col_stride;
      const std::uint32_t pair = j < cols ? pair_of(at[0], k < pairs ? at[k_stride] : bfloat16()) : 0;
      __builtin_memcpy(y + k * width + j, &pair, sizeof pair);
    }
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
