#pragma once
/// Fetches lines while a matrix unit multiplies: of results that are stored next, and of the next panel.
#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Lines  cache lines of a row of results
template <int Lines> struct lines_ahead {
  const std::byte* panel = nullptr;
  std::int64_t lines = 0;  // of the panel
  const std::byte* result = nullptr;
  std::int64_t rows = 0, row_bytes = 0;  // of results
  std::int64_t lines_each = 0, rows_each = 0;

  /// Divides all among so many steps.
  ISOTOPE_INLINE void divide(std::int64_t steps) { lines_each = divide_up(lines, steps), rows_each = divide_up(rows, steps); }
  /// Fetches those of one step.
  ISOTOPE_INLINE void fetch() {
    for (std::int64_t i = 0; i < rows_each && rows > 0; ++i, --rows, result += row_bytes)
      for (int line = 0; line < Lines; ++line) __builtin_prefetch(result + 64 * line, 1, 3);
    for (std::int64_t i = 0; i < lines_each && lines > 0; ++i, --lines, panel += 64) __builtin_prefetch(panel, 0, 2);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
