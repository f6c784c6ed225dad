#pragma once
/// The microkernel for bf16: it makes a register tile of C from packed pairs, two multiply-adds per lane and instruction.
///
/// Bound by multiply-adds: vdpbf16ps has the rate of the f32 instruction on Zen 5, so twice its flops; tile, panels and blocks are those of f32 with
/// pairs in place of numbers. vdpbf16ps adds the second term of a pair before the first, each with one rounding, and flushes subnormal operands and
/// results to zero. So where a sum is small enough for this to show, the f32 microkernel recomputes the tile in the same order, unless the exponents
/// of the operands rule subnormal numbers out: the bits are the same wherever nothing is lost. Scanning all rows before multiplying cost 3 to 12 %.
#include <bit>

#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/pairs.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// sum[i][j] += sum_k A[i, k] B[k, j] over pairs, in ascending order of k.
///
/// @param a      pair k of row i is at a[i row_stride + k pair_stride]
/// @param b      pair k of column j, a word, is at b[k ldb + j]
/// @param ahead  what happens before each 16 steps, if anything, such as prefetches
template <int Rows, int Vectors, class... Ahead>
ISOTOPE_INLINE void add_pair_steps(vector (&sum)[Rows][Vectors], const bfloat16* a, std::int64_t row_stride, std::int64_t pair_stride,
                                   const float* b, std::int64_t ldb, std::int64_t steps, Ahead... ahead) {
  constexpr int groups = (Rows + 3) / 4;
  const bfloat16* base[groups];  // one addressing mode from base[g] reaches each of the rows 4g to 4g + 3
#pragma GCC unroll 4
  for (int g = 0; g < groups; ++g) base[g] = a + 4 * g * row_stride;
  for (std::int64_t some = 0; steps > 0; steps -= some) {
    some = sizeof...(Ahead) > 0 ? smaller(steps, rows_ahead::line) : steps;
    (ahead.template fetch<Rows>(row_stride), ...);
    for (std::int64_t j = some; j > 0; --j) {
      words bk[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) __builtin_memcpy(&bk[v], b + lanes * v, sizeof bk[v]);
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 4
        for (int i = 0; i < (Rows - 4 * g < 4 ? Rows - 4 * g : 4); ++i) {
          std::uint32_t pair;
          __builtin_memcpy(&pair, base[g] + i * row_stride, sizeof pair);
          const words x = pair - words{};
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) isa::add_pairs(sum[4 * g + i][v], x, bk[v]);
        }
        base[g] += pair_stride;
      }
      b += ldb;
    }
  }
}

/// As the f32 microkernel, on pairs. Leaves C unchanged if a sum of this block is below `doubtful`.
///
/// @param c    is written in whole vectors, rounded if `c.rounded` is set, which needs `add` to be false
/// @return     whether the tile was made
template <int Rows, int Vectors, class... Ahead>
ISOTOPE_NOINLINE ISOTOPE_CONTRACT bool pair_microkernel(const pair_rows& a, const panel& b, const place& c, std::int64_t steps, bool add,
                                                        float doubtful, Ahead... ahead) {
  vector sum[Rows][Vectors] = {};
  add_pair_steps(sum, a.data, a.row_stride, a.pair_stride, b.data, b.ld, steps, ahead...);
  vector least[2] = {doubtful - vector{}, doubtful - vector{}};
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) isa::keep_least_magnitude(least[i % 2], sum[i][v]);
  }
  if (any_below(least[0], doubtful) || any_below(least[1], doubtful)) return false;
  if (c.rounded != nullptr) {  // no sum is subnormal
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        rounded_vector y{};
        isa::round_to_bf16(y, sum[i][v]);
        __builtin_memcpy(static_cast<void*>(c.rounded + i * c.rounded_ld + lanes * v), &y, sizeof y);
      }
    }
    return true;
  }
  put_tile(sum, c.at, c.ld, add);
  return true;
}

/// Returns 2^24 times what a sum of one block can lose: for each term the product of a flushed element, and 2^-126 for each sum.
///
/// @param largest  exponent of the numbers that multiply subnormal ones
inline float doubtful_below(int largest) {
  constexpr int terms = 10;  // log2 of the terms in a block
  static_assert(2 * blocking::depth <= 1 << terms);
  const int lost = (largest > 126 ? largest - 126 - 126 : -126) + 1 + terms;
  return std::bit_cast<float>(std::uint32_t(lost + 24 + 127) << 23);
}

/// A panel of pairs, with the exponents of its numbers.
struct pair_panel {
  panel pairs;
  int least, largest;  // negative: unknown

  void find_exponents(std::int64_t steps) {
    exponents r;
    r.take(reinterpret_cast<const bfloat16*>(pairs.data), 2 * steps * pairs.ld);
    least = r.least();
    largest = r.largest();
  }

  /// Whether A's exponents are needed too, because the panel has subnormal numbers, infinities or NaN.
  bool hides() const { return least == 0 || largest == 255; }
  /// Whether no check of the sums is valid: infinity times a subnormal number flushed to zero is NaN.
  bool blind(int left) const { return hides() && (left == 255 || largest == 255); }
  /// @param left  the largest exponent of A, needed where hides()
  float doubtful(int left) const { return doubtful_below(hides() && left > largest ? left : largest); }
};

/// Whether no term and no sum of a gemm is subnormal: all are multiples of the product of the operands' last places, at least 2^(a - 134) and 2^(b -
/// 134), so multiples of 2^-126.
constexpr bool stays_normal(int a, int b) { return a > 0 && b > 0 && a + b >= 142; }

/// The gemm of a panel in f32, for numbers that the pair instruction flushes.
///
/// @param a  a.pair(i, k) is the pair of terms 2k and 2k + 1 of row i
template <class Rows>
ISOTOPE_NOINLINE void widened_gemm(const Rows& a, std::int64_t rows, const panel& b, const place& c, std::int64_t steps, bool add) {
  constexpr std::int64_t depth = 2 * blocking::depth;
  alignas(64) float left[blocking::rows * depth], right[depth * blocking::cols];
  const auto spread = [](const void* from, float* second,
                         float* first) {  // writes a pair's terms in the order in which the instruction adds them
    bfloat16 pair[2];
    __builtin_memcpy(pair, from, sizeof pair);
    *second = float(pair[1]);
    *first = float(pair[0]);
  };
  for (std::int64_t k = 0; k < steps; ++k) {
    float* to = right + 2 * k * b.width;
    for (std::int64_t j = 0; j < b.width; ++j) spread(b.data + k * b.ld + j, to + j, to + b.width + j);
  }
  for (std::int64_t first = 0; first < rows; first += blocking::rows) {
    const std::int64_t some = smaller(blocking::rows, rows - first);
    for (std::int64_t i = 0; i < some; ++i)
      for (std::int64_t k = 0; k < steps; ++k) {
        float* to = left + i * depth + 2 * k;
        spread(a.pair(first + i, k), to, to + 1);
      }
    panel_gemm(row_block{left, depth, 1}, some, {right, b.width, b.width, b.elems}, c.part(first, 0), 2 * steps, add);
  }
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < rows and j < b.elems, or j < b.width where C is padded.
inline void panel_gemm(pair_rows& a, std::int64_t rows, const pair_panel& b, const place& c, std::int64_t steps, bool add) {
  using tile = bool (*)(const pair_rows&, const panel&, const place&, std::int64_t, bool, float);
  constexpr int tall = int(blocking::rows);
  static constexpr tile tiles[2][4] = {
      {&pair_microkernel<1, 1>, &pair_microkernel<2, 1>, &pair_microkernel<4, 1>, &pair_microkernel<tall, 1>},
      {&pair_microkernel<1, 2>, &pair_microkernel<2, 2>, &pair_microkernel<4, 2>, &pair_microkernel<tall, 2>}};
  const auto known = [&] {
    if (a.least < 0) a.find_exponents(rows, steps);
    return stays_normal(a.least, b.least);
  };
  bool normal = a.least >= 0 && known();
  if (b.pairs.elems < b.pairs.width || b.hides()) normal = known();  // sums beyond the operand are zero
  const bool blind = !normal && b.blind(a.largest);
  const float doubtful = b.doubtful(a.largest);
  const bool whole = b.pairs.elems == b.pairs.width;
  by_tiles(rows, b.pairs, c, add, [&](int size, std::int64_t i, std::int64_t some, float* at, std::int64_t ld, bool more) {
    const pair_rows from{a.data + i * a.row_stride, a.row_stride, a.pair_stride, a.least, a.largest};
    bfloat16* const out = c.rounded == nullptr ? nullptr : c.rounded + i * c.rounded_ld;
    place to{at, ld, true, whole && !more ? out : nullptr, c.rounded_ld};
    const auto run = [&](float below) { return tiles[b.pairs.width / lanes - 1][size](from, b.pairs, to, steps, more, below); };
    if (blind || !run(normal ? 0.0f : doubtful)) {
      normal = known();
      if (normal) {
        run(0.0f);
      } else {
        to.rounded = nullptr;
        widened_gemm(from, some, b.pairs, to, steps, more);
      }
    }
    if (out != nullptr && to.rounded == nullptr)
      for (std::int64_t r = 0; r < some; ++r) math::narrow(at + r * ld, out + r * c.rounded_ld, b.pairs.elems);
  });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
