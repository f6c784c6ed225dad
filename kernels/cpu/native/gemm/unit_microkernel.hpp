#pragma once
/// The microkernel for bf16 on a matrix unit: 32 rows by a panel of 32 columns, in four tiles of C.
///
/// Bound by the unit: four tile multiplications, 64 clocks, need four tile loads, 32 clocks with operands in L1 (Sapphire Rapids). The rows stay in
/// L1 while panels come from L2. The unit flushes subnormal numbers to zero as vdpbf16ps does, so small sums are recomputed as in
/// pair_microkernel.hpp. Sums leave the unit through 4 KB of L1, where they are checked, added, rounded and cut at the edges of C.
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>
#include <isotope/kernels/cpu/native/gemm/pair_microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_rows.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Calls step<T>(at) for the tiles of sums[i ld + j]: T = 0 and 1 beside each other, 2 and 3 below them, for 16 Halves rows and 16 Vectors columns.
template <class Unit, int Halves, int Vectors, class F> ISOTOPE_INLINE void each_tile_of(float* sums, std::int64_t ld, const F& step) {
  step(std::integral_constant<int, 0>{}, sums);
  if constexpr (Vectors == 2) step(std::integral_constant<int, 1>{}, sums + Unit::rows);
  if constexpr (Halves == 2) step(std::integral_constant<int, 2>{}, sums + Unit::rows * ld);
  if constexpr (Halves == 2 && Vectors == 2) step(std::integral_constant<int, 3>{}, sums + Unit::rows * ld + Unit::rows);
}
/// Clears tiles of C, or loads them if `add`.
template <class Unit, int Halves, int Vectors> ISOTOPE_INLINE void begin_tiles(float* sums, std::int64_t ld, bool add) {
  if (add)
    each_tile_of<Unit, Halves, Vectors>(
        sums, ld, [&]<int T>(std::integral_constant<int, T>, float* at) ISOTOPE_INLINE_LAMBDA { Unit::template load<T>(at, 4 * ld); });
  else
    each_tile_of<Unit, Halves, Vectors>(
        sums, ld, [&]<int T>(std::integral_constant<int, T>, float*) ISOTOPE_INLINE_LAMBDA { Unit::template zero<T>(); });
}
template <class Unit, int Halves, int Vectors> ISOTOPE_INLINE void store_tiles(float* sums, std::int64_t ld) {
  each_tile_of<Unit, Halves, Vectors>(
      sums, ld, [&]<int T>(std::integral_constant<int, T>, float* at) ISOTOPE_INLINE_LAMBDA { Unit::template store<T>(at, 4 * ld); });
}

/// sums[i ld + j] = sum_k A[i, k] B[k, j] for 16 Halves rows and 16 Vectors columns, in ascending order of k.
/// @tparam Add  adds to `sums`
template <class Unit, int Halves, int Vectors, bool Add = false>
ISOTOPE_NOINLINE void unit_microkernel(const unit_rows<Unit>& a, const panel& b, std::int64_t tiles, float* sums, std::int64_t ld) {
  begin_tiles<Unit, Halves, Vectors>(sums, ld, Add);
  const bfloat16* left = a.data;
  const float* right = b.data;
  // Copied to locals: the compiler must assume that the tile instructions write to memory.
  const std::int64_t row_bytes = a.row_stride * 2, pair_bytes = b.ld * 4, half = a.half_stride, next = a.tile_stride;
  for (; tiles > 0; --tiles) {
    Unit::template load<4>(left, row_bytes);
    Unit::template load<6>(right, pair_bytes);
    Unit::template add_pairs<0, 4, 6>();
    if constexpr (Vectors == 2) {
      Unit::template load<7>(right + Unit::rows, pair_bytes);
      Unit::template add_pairs<1, 4, 7>();
    }
    if constexpr (Halves == 2) {
      Unit::template load<5>(left + half, row_bytes);
      Unit::template add_pairs<2, 5, 6>();
      if constexpr (Vectors == 2) Unit::template add_pairs<3, 5, 7>();
    }
    left += next;
    right += Unit::terms / 8 * pair_bytes;
  }
  store_tiles<Unit, Halves, Vectors>(sums, ld);
}

/// Whether one of sums[0:rows, 0:cols] is below `bound` in magnitude; NaN is not.
inline bool any_doubtful(const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t cols, float bound) {
  vector least[2] = {bound - vector{}, bound - vector{}};
  const std::int64_t full = cols / lanes * lanes;
  bool below = false;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < full; j += lanes) {
      vector v;
      __builtin_memcpy(&v, sums + i * ld + j, sizeof v);
      keep_least(least[i % 2], v);
    }
    for (std::int64_t j = full; j < cols; ++j) below |= __builtin_fabsf(sums[i * ld + j]) < bound;
  }
  return below || any_below(least[0], bound) || any_below(least[1], bound);
}

/// Stores sums rounded to bf16.
/// @tparam Exact  keeps subnormal sums
/// @return  the smallest magnitudes that were added or rounded
template <bool Exact> vector put_rounded(const float* sums, std::int64_t rows, const panel& b, const place& c, bool add) {
  const bool whole = b.elems == b.width;
  vector least = 1 - vector{};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < b.width; j += lanes) {
      vector y, old;
      __builtin_memcpy(&y, sums + i * 32 + j, sizeof y);
      if (add) {
        keep_least(least, y);
        __builtin_memcpy(&old, c.at + i * c.ld + j, sizeof old);
        y = old + y;
      }
      store_some(c.rounded + i * c.rounded_ld + j, Exact ? rounded(y) : rounded_quickly(y, least),
                 whole ? sizeof(rounded_vector) : std::size_t(smaller(lanes, b.elems - j)) * sizeof(bfloat16));
    }
  return least;
}
/// Stores sums as f32 or bf16.
inline void put_sums(const float* sums, std::int64_t rows, const panel& b, const place& c, bool add) {
  if (c.rounded != nullptr) {  // the place of sums before rounding is padded
    if (any_below(put_rounded<false>(sums, rows, b, c, add), 0x1p-126f)) put_rounded<true>(sums, rows, b, c, add);
    return;
  }
  const bool whole = c.padded || b.elems == b.width;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < b.width; j += lanes) {
      float* const at = c.at + i * c.ld + j;
      const std::size_t bytes = whole ? sizeof(vector) : std::size_t(smaller(lanes, b.elems - j)) * sizeof *at;
      vector y, old{};
      __builtin_memcpy(&y, sums + i * 32 + j, sizeof y);
      if (add) {
        if (whole) __builtin_memcpy(&old, at, sizeof old);
        else __builtin_memcpy(&old, at, bytes);
        y = old + y;
      }
      store_some(at, y, bytes);
    }
}

/// C[i, j] (+)= sum_k A[i, k] B[k, j] for i < rows <= 32 and j < b.elems, or j < b.width where C is padded.
template <class Unit> void panel_gemm(unit_rows<Unit>& a, std::int64_t rows, pair_panel& b, const place& c, std::int64_t steps, bool add) {
  using tile = void (*)(const unit_rows<Unit>&, const panel&, std::int64_t, float*, std::int64_t);
  static constexpr tile tiles_of_c[2][2] = {{&unit_microkernel<Unit, 1, 1>, &unit_microkernel<Unit, 1, 2>},
                                            {&unit_microkernel<Unit, 2, 1>, &unit_microkernel<Unit, 2, 2>}};
  const std::int64_t tiles = divide_up(2 * steps, Unit::terms);
  const auto look = [&] {
    if (a.least < 0) a.find_exponents(rows, tiles);
    if (b.least < 0) b.find_exponents(tiles * Unit::terms / 2);
  };
  // If one operand has no subnormal numbers or infinities, its exponents bound what the other one can lose.
  const bool left = a.least > 0 && a.largest < 255, right = b.least > 0 && b.largest < 255;
  if (!left && !right) look();
  const int largest = right ? b.largest : left || a.largest > b.largest ? a.largest : b.largest;
  if (left || right || largest < 255 || stays_normal(a.least, b.least)) {
    alignas(64) float some[32 * 32];
    const bool straight = !add && c.rounded == nullptr && rows % Unit::rows == 0 && (c.padded || b.pairs.elems == b.pairs.width);
    float* const sums = straight ? c.at : some;
    const std::int64_t ld = straight ? c.ld : 32;
    tiles_of_c[rows > Unit::rows][b.pairs.width > lanes](a, b.pairs, tiles, sums, ld);
    const float bound = doubtful_below(largest);
    bool certain = a.least >= 0 && b.least >= 0 && stays_normal(a.least, b.least);
    if (!certain && c.rounded != nullptr && b.pairs.elems == b.pairs.width) {
      // Checked while storing; if suspect, recomputed and stored again.
      if (!any_below(put_rounded<false>(sums, rows, b.pairs, c, add), bound)) return;
    } else if (!certain && !any_doubtful(sums, ld, rows, b.pairs.elems, bound)) {
      certain = true;
    }
    if (!certain) {
      look();
      certain = stays_normal(a.least, b.least);
    }
    if (certain) {
      if (!straight) put_sums(sums, rows, b.pairs, c, add);
      return;
    }
  }
  widened_gemm(a, rows, b.pairs, c, steps, add);
  if (c.rounded != nullptr)
    for (std::int64_t i = 0; i < rows; ++i) math::narrow(c.at + i * c.ld, c.rounded + i * c.rounded_ld, b.pairs.elems);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
