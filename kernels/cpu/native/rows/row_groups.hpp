#pragma once
/// Groups of a few rows: shared operands are loaded once per group, and sums of one row hide the latency of another's.
#include <isotope/kernels/cpu/native/rows/row_vectors.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Rows of a group: in layer_norm_grad, four rows need 16 sums, then 16 other registers, of 32.
inline constexpr int grouped_rows = config::vector_registers >= 32 ? 4 : 2;

/// Calls f(row, std::integral_constant<int, rows>) for groups of rows from first on.
template <class F> ISOTOPE_INLINE void for_groups(std::int64_t first, std::int64_t end, const F& f) {
  std::int64_t r = first;
  for (; r + grouped_rows <= end; r += grouped_rows) f(r, std::integral_constant<int, grouped_rows>{});
  for (; r < end; ++r) f(r, std::integral_constant<int, 1>{});
}

/// Fetches the cache line that begins at x[j], if one does where x begins one.
template <class T> ISOTOPE_INLINE void fetch_line(const T* x, std::int64_t j) {
  constexpr std::int64_t line = 64 / std::int64_t(sizeof(T));
  if (lanes % line == 0 || j % line == 0) __builtin_prefetch(x + j);
}

/// Returns d, or the addend at `at` plus d as T stores it: each rounds once, as separate steps would.
template <class T, class Amount> ISOTOPE_INLINE vector plus_addend(const T* addend, std::int64_t at, const vector& d, Amount amount) {
  return addend == nullptr ? d : load(addend + at, amount) + as_stored<T>(d);
}

/// y[r C + j] = result[r] of f(result, j, amount) for a group of rows of C columns. bf16 results are rounded two vectors at a time.
template <int Rows, class T, class F> ISOTOPE_INLINE void put_rows(std::int64_t C, T* y, const F& f) {
  constexpr auto rows = std::make_index_sequence<std::size_t(Rows)>{};
  vector v[Rows], w[Rows];
  std::int64_t j = 0;
  if constexpr (!std::is_same_v<T, float>)
    for (; j + 2 * lanes <= C; j += 2 * lanes) {
      f(v, j, whole_vector{});
      f(w, j + lanes, whole_vector{});
      math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA { store(y + std::int64_t(r) * C + j, v[r], w[r]); });
    }
  const auto some = [&](auto amount) ISOTOPE_INLINE_LAMBDA {
    f(v, j, amount);
    math::unrolled(rows, [&](auto r) ISOTOPE_INLINE_LAMBDA { store(y + std::int64_t(r) * C + j, v[r], amount); });
  };
  for (; j + lanes <= C; j += lanes) some(whole_vector{});
  if (j < C) some(part_of_vector{int(C - j)});
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
