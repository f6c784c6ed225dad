#pragma once
/// The matrix unit (AMX) of a processor: eight tiles of 16 rows of 64 bytes. This file states what a gemm needs of such a unit. Tests have one in C++
/// (tests/cpu/kernels/imitated_unit.hpp), so that the code around the instructions runs on every processor with AVX-512.
///
/// add_pairs, by Intel's manual, sums the even terms and the odd terms of the tile's 32, each sum from zero with fused multiply-adds in ascending
/// order; it adds the two and adds that to the tile of C. Subnormal operands and results become zero, whatever MXCSR says; ties round to even.
/// add_bytes sums products of signed bytes as 32-bit integers.
#include <cstdint>

#include <isotope/backend/cpu/instructions.hpp>
#include <isotope/backend/cpu/tile_permission.hpp>
#include <isotope/core/compiler.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The configuration of a unit. Edges are filled with zeros, so none is needed for them.
struct alignas(64) tile_sizes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_sizes) == 64);
inline constexpr tile_sizes whole_tiles;  // every tile has all rows and bytes
/// For products of one block of K of 32 bytes: rows of A in tiles 4 and 5, lines of B in tiles 6 and 7.
inline constexpr tile_sizes block_tiles = {.row_bytes = {64, 64, 64, 64, 32, 32, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 8, 8}};

/// Configures the tiles of its thread while the object lives. Other libraries release tiles, so an object lives only as long as a task.
class matrix_unit {
 public:
  static constexpr bool there = config::has_bf16_tiles;
  static constexpr std::int64_t rows = 16, terms = 32;  // of a tile: rows of C, terms of K in a row of A
  static constexpr bool has_bytes = config::has_byte_tiles;
  static bool permitted() { return tiles_refused().empty(); }
  static bool bytes_permitted() { return byte_tiles_permitted(); }

  matrix_unit() : matrix_unit(whole_tiles) {}
  explicit matrix_unit(const tile_sizes& sizes) { isa::configure_tiles(sizes); }
  ~matrix_unit() { isa::release_tiles(); }
  matrix_unit(const matrix_unit&) = delete;
  matrix_unit& operator=(const matrix_unit&) = delete;

  template <int T> ISOTOPE_INLINE static void zero() { isa::zero_tile<T>(); }
  /// Loads rows, `stride` bytes apart.
  template <int T> ISOTOPE_INLINE static void load(const void* at, std::int64_t stride) { isa::load_tile<T>(at, stride); }
  /// The same, past L1.
  template <int T> ISOTOPE_INLINE static void load_once(const void* at, std::int64_t stride) { isa::load_tile_once<T>(at, stride); }
  template <int T> ISOTOPE_INLINE static void store(void* at, std::int64_t stride) { isa::store_tile<T>(at, stride); }
  /// C[i, j] += sum_k A[i, k] B[k, j] in f32, with 32 terms of bf16. Row k of B's tile holds the terms 2k and 2k + 1 of each column.
  template <int C, int A, int B> ISOTOPE_INLINE static void add_pairs() { isa::add_tile_pairs<C, A, B>(); }
  /// The same for signed bytes and 32-bit integers. Line k of B's tile holds the terms 4k to 4k + 3 of each column.
  template <int C, int A, int B> ISOTOPE_INLINE static void add_bytes() { isa::add_tile_bytes<C, A, B>(); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
