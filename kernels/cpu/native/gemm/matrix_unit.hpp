#pragma once
/// The matrix unit of a processor with AMX: eight tiles, each of 16 rows of 64 bytes. What products ask of one is written down here; tests have one
/// in C++ (tests/cpu_kernels/imitated_unit.hpp), so that all that surrounds the instructions runs on every processor with AVX-512.
///
/// add_pairs, by Intel's manual: sums of the even terms and of the odd terms of the tile's 32, each from zero with fused multiply-adds in ascending
/// order; the two are added, and that is added to the tile of C. Subnormal operands and results are zero, whatever MXCSR says; ties go to even.
#include <cstdint>

#include <isotope/backend/cpu/tile_permission.hpp>
#include <isotope/core/compiler.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// The configuration of a unit: every tile has all rows and bytes. Edges are filled with zeros, so there is no other one.
struct alignas(64) tile_sizes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_sizes) == 64);
inline constexpr tile_sizes whole_tiles;

/// Tiles are configured while an object lives, in its own thread. Other libraries release them, so an object lives as long as a task, no longer.
class matrix_unit {
 public:
  static constexpr bool there = config::has_bf16_tiles;
  static constexpr std::int64_t rows = 16, terms = 32;  // of a tile: rows of C, and terms of K in a row of A
  static bool permitted() { return tiles_refused().empty(); }

  matrix_unit() { ISOTOPE_TILES_CONFIGURE(whole_tiles); }
  ~matrix_unit() { ISOTOPE_TILES_RELEASE(); }
  matrix_unit(const matrix_unit&) = delete;
  matrix_unit& operator=(const matrix_unit&) = delete;

  template <int T> ISOTOPE_INLINE static void zero() { ISOTOPE_TILES_ZERO(T); }
  /// Rows of 64 bytes, `stride` bytes apart.
  template <int T> ISOTOPE_INLINE static void load(const void* at, std::int64_t stride) { ISOTOPE_TILES_LOAD(T, at, stride); }
  template <int T> ISOTOPE_INLINE static void store(void* at, std::int64_t stride) { ISOTOPE_TILES_STORE(T, at, stride); }
  /// C[i, j] += sum_k A[i, k] B[k, j], f32 and 32 terms of bf16; row k of B's tile holds the terms 2k and 2k + 1 of each column.
  template <int C, int A, int B> ISOTOPE_INLINE static void add_pairs() { ISOTOPE_TILES_ADD_PAIRS(C, A, B); }
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
