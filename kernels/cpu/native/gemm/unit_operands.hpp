#pragma once
/// The operand format of a matrix unit, which multiplies 16 pairs of bf16 at a time: rows in tiles, and the panels of pair_operands padded with
/// zeros.
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Unit> struct unit_operands : pair_operands {
  static constexpr std::int64_t k_unit = Unit::terms;
  static constexpr std::int64_t tile_rows = unit_rows<Unit>::most, v_unit = tile_rows;
  // With blocks of 768 along K, a block takes 384 KB, a fifth of the L2 of processors with such units, and divides the usual numbers of tokens.
  static constexpr std::int64_t block_rows = 256;
  static_assert(block_rows * blocking::cols <= blocking::tile_floats && blocking::chunk_rows % v_unit == 0);
  static_assert(2 * blocking::depth % k_unit == 0);
  // Tile loads from L2 need the line fill buffers that prefetches from memory occupy: with prefetches, the heads of GPT-2 are 15 to 25 % slower.
  static constexpr bool fetches = false;
  static constexpr bool transposes(std::int64_t k_stride) { return k_stride != 1; }
  /// Rows of a strip lie in all sets of L1, unless their distance is a multiple of 2 KB.
  static constexpr bool reads_whole_strips(std::int64_t row_stride, std::int64_t k_stride, std::int64_t terms) {
    return k_stride == 1 && terms % k_unit == 0 && row_stride % 1024 != 0;
  }
  static constexpr std::int64_t strip_unit = Unit::rows;
  using unit = Unit;
  using rows = unit_rows<Unit>;
  using copy = unit_copy<Unit>;

  static constexpr std::int64_t packed_steps(std::int64_t k) { return whole(k, k_unit) / 2; }
  /// Rows are always copied: the rows of a tile in place would map to few sets of L1, and of L2 where they lie a power of two apart.
  static bool copied(const view&, std::int64_t, std::int64_t, std::int64_t, std::int64_t) { return true; }
  static rows in_place(const view& x, std::int64_t at, std::int64_t row_stride, std::int64_t) {
    return {x.as<const bfloat16>() + at, row_stride, Unit::rows * row_stride, Unit::terms};
  }
  /// Rows that only one cell uses are read in place if they form whole tiles. Scan the copy's exponents only if it is reused by more panels than it
  /// has tiles: then the sums need no check.
  static rows take(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t terms,
                   std::int64_t panels, const copy& to) {
    if (k_stride == 1 && n == tile_rows && terms % k_unit == 0) return {x, row_stride, Unit::rows * row_stride, Unit::terms};
    if (panels * k_unit >= terms) {
      to.take(x, row_stride, k_stride, n, terms);
      return to.block();
    }
    to.fill(x, row_stride, k_stride, n, terms);
    return to.tiles();
  }
  static void pack(const bfloat16* x, std::int64_t k_stride, std::int64_t stride, std::int64_t terms, std::int64_t elems,
                   std::int64_t width, float* y) {
    fill(x, k_stride, stride, terms, elems, width, y + head);
    note(packed_steps(terms) * width, y);
  }
  /// Returns a panel for one use; the exponents of its rows are known.
  static panel once(const bfloat16* x, std::int64_t k_stride, std::int64_t stride, std::int64_t terms, std::int64_t elems,
                    std::int64_t width, float* y) {
    fill(x, k_stride, stride, terms, elems, width, y);
    return {{y, width, width, elems}, -1, -1};
  }

 private:
  static void fill(const bfloat16* x, std::int64_t k_stride, std::int64_t stride, std::int64_t terms, std::int64_t elems,
                   std::int64_t width, float* y) {
    pack_pairs(x, k_stride, stride, terms, elems, width, y);
    const std::int64_t taken = divide_up(terms, 2) * width, all = packed_steps(terms) * width;
    if (all > taken) __builtin_memset(y + taken, 0, std::size_t(all - taken) * sizeof *y);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
