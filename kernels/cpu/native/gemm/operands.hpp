#pragma once
/// The operand formats of the native gemm: f32 numbers (converted from any format) or pairs of bf16. Both take 32 bits, so blocks and panels have the
/// same sizes in memory. Lengths along k count terms in the gemm and steps in a packed operand. unit_operands.hpp has the format of a matrix unit.
#include <isotope/kernels/cpu/gemm/blocks.hpp>
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/native/gemm/packed_weight.hpp>
#include <isotope/kernels/cpu/native/gemm/pair_microkernel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// What the formats for vector instructions have in common.
struct vector_operands {
  static constexpr std::int64_t tile_rows = blocking::rows, block_rows = blocking::block_rows, v_unit = blocking::chunk_unit;
  /// Whether each cell must transpose its rows, at a cost beside that of the gemm.
  static constexpr bool transposes(std::int64_t) { return false; }
  /// Whether strips of A with a multiple of `strip_unit` rows need no copy, though `copied` says that others do.
  static constexpr bool reads_whole_strips(std::int64_t, std::int64_t, std::int64_t) { return false; }
  static constexpr std::int64_t strip_unit = 1;
  static constexpr bool fetches = true;  // whether the next part of an operand is prefetched from memory
  struct unit {};                        // what a task holds while it multiplies
};

struct f32_operands : vector_operands {
  static constexpr std::int64_t per_step = 1, k_unit = 1, head = 0;  // head: floats before a packed panel
  static constexpr bool rounds = false;                              // whether the microkernel can round, where nothing else is left to do
  static constexpr bool keeps = false;                               // whether it multiplies panels of a packed_weight
  using rows = row_block;
  using copy = row_copy;
  using panel = native::panel;

  template <class F> static void with_type(const view& x, const F& f) { portable::with_type(x, f); }
  static constexpr std::int64_t packed_steps(std::int64_t k) { return k; }
  /// Whether rows must be copied: they have another format, or their strides would put a block into few sets of L2.
  static bool copied(const view& x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t, std::int64_t) {
    return x.type != dtype::f32 || larger_of(row_stride, k_stride) % 1024 == 0;
  }
  static rows in_place(const view& x, std::int64_t at, std::int64_t row_stride, std::int64_t k_stride) {
    return {x.as<const float>() + at, row_stride, k_stride};
  }

  /// Reads f32 rows in place: copying rows that are not contiguous along k costs 4 %, though in place they share few sets of L1.
  template <class T>
  static rows take(const T* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t k, std::int64_t,
                   const copy& to) {
    if constexpr (std::is_same_v<T, float>) {
      return {x, row_stride, k_stride};
    } else {
      to.take(x, row_stride, k_stride, n, k);
      return to.block();
    }
  }
  template <class T>
  static void pack(const T* x, std::int64_t k_stride, std::int64_t stride, std::int64_t k, std::int64_t elems, std::int64_t width,
                   float* y) {
    pack_right(x, k_stride, stride, k, elems, width, y);
  }
  /// Packs a panel of a weight in blocks, beside activations of format `beside`.
  static void unpack(const portable::block_weight& w, std::int64_t n, std::int64_t elems, std::int64_t k0, std::int64_t k,
                     std::int64_t width, float* y, dtype beside) {
    portable::unpack_panel(w, n, elems, k0, k, width, y, beside == dtype::bf16);
  }
  static panel packed(const float* y, std::int64_t width, std::int64_t elems) { return {y, width, width, elems}; }
  /// Returns a panel for one use. f32 rows of whole panels are read in place, unless they all fall into the same few sets of L2.
  template <class T>
  static panel once(const T* x, std::int64_t k_stride, std::int64_t stride, std::int64_t k, std::int64_t elems, std::int64_t width,
                    float* y) {
    if constexpr (std::is_same_v<T, float>)
      if (stride == 1 && elems == width && k_stride % 1024 != 0) return {x, k_stride, width, elems};
    pack(x, k_stride, stride, k, elems, width, y);
    return packed(y, width, elems);
  }
};

struct pair_operands : vector_operands {
  static constexpr std::int64_t per_step = 2, k_unit = 2, head = 16;
  static constexpr bool rounds = true, keeps = true;
  using rows = pair_rows;
  using copy = pair_copy;
  using panel = pair_panel;

  template <class F> static void with_type(const view& x, const F& f) { f(x.as<const bfloat16>()); }
  static constexpr std::int64_t packed_steps(std::int64_t k) { return divide_up(k, 2); }
  static bool copied(const view&, std::int64_t row_stride, std::int64_t k_stride, std::int64_t, std::int64_t terms) {
    return k_stride != 1 || terms % 2 != 0 || row_stride % 2048 == 0;
  }
  static rows in_place(const view& x, std::int64_t at, std::int64_t row_stride, std::int64_t) {
    return {x.as<const bfloat16>() + at, row_stride, 2};
  }
  static rows take(const bfloat16* x, std::int64_t row_stride, std::int64_t k_stride, std::int64_t n, std::int64_t terms, std::int64_t,
                   const copy& to) {
    if (k_stride == 1 && terms % 2 == 0) return {x, row_stride, 2};
    to.take(x, row_stride, k_stride, n, terms);
    return to.block();
  }
  static void pack(const bfloat16* x, std::int64_t k_stride, std::int64_t stride, std::int64_t terms, std::int64_t elems,
                   std::int64_t width, float* y) {
    pack_pairs(x, k_stride, stride, terms, elems, width, y + head);
    note(packed_steps(terms) * width, y);
  }
  /// Packs a panel of a weight in blocks, with its elements rounded to bf16.
  static void unpack(const portable::block_weight& w, std::int64_t n, std::int64_t elems, std::int64_t k0, std::int64_t terms,
                     std::int64_t width, float* y, dtype = dtype::bf16) {
    int least = 512, largest = 0;
    for (std::int64_t c = 0; c < width; c += quantized::panel_rows) {
      block_pairs pairs(w, n + c, smaller(quantized::panel_rows, elems - c));
      pairs.take(k0, terms, y + head + c, width);
      least = pairs.least() < least ? pairs.least() : least;
      largest = pairs.largest() > largest ? pairs.largest() : largest;
    }
    y[0] = float(least);
    y[1] = float(largest);
  }
  /// Puts the exponents of a panel of `count` words before it.
  static void note(std::int64_t count, float* y) {
    exponents found;
    found.take(reinterpret_cast<const bfloat16*>(y + head), 2 * count);
    found.put(y);
  }
  static panel packed(const float* y, std::int64_t width, std::int64_t elems) {
    return {{y + head, width, width, elems}, int(y[0]), int(y[1])};
  }
  static panel once(const bfloat16* x, std::int64_t k_stride, std::int64_t stride, std::int64_t terms, std::int64_t elems,
                    std::int64_t width, float* y) {
    pack(x, k_stride, stride, terms, elems, width, y);
    return packed(y, width, elems);
  }
  /// Returns a panel of a packed_weight.
  static panel kept(const float* packed, std::int64_t at, std::int64_t elems, std::int64_t width) {
    return {{packed + at, width, width, elems}, packed_weight::least(packed), packed_weight::largest(packed)};
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
