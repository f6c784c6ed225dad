#pragma once
/// Bound by flops: 2 M N K at the rate of the multiply-adds, for bf16 at that of the matrix unit where there is one (measured: bench/CPU.md).
///
/// Register tiles, panels, blocks that stay in L2 and cells follow Goto & van de Geijn 2008. The cost in bytes and shuffles decides which operand is
/// packed for all threads and which one is streamed. A fused body works on a finished cell while it is in L2.
#include <isotope/backend/cpu/pair_rate.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_dot_panel.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_packed_gemm.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_panel.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_tile_gemm.hpp>
#include <isotope/kernels/cpu/native/gemm/block_gemv.hpp>
#include <isotope/kernels/cpu/native/gemm/choice.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_columns.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_pairs.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_panels.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_pieces.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_rows.hpp>
#include <isotope/kernels/cpu/native/gemm/gemm_by_unit.hpp>
#include <isotope/kernels/cpu/native/gemm/gemv.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_operands.hpp>
#include <isotope/op/matmul.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Unit  the matrix unit that multiplies tiles of bf16, of f32 in pieces of bf16, and of activations and weights in 8 bits, where it exists and the system permits it
/// @tparam Pairs  says whether pairs of bf16 are multiplied, or numbers in f32
template <class P, class Unit = matrix_unit, class Pairs = pair_rate> struct matmul {
  static constexpr bool tiles = Unit::there && lanes == Unit::rows && std::same_as<P, precision::bf16>;
  static constexpr bool byte_tiles = Unit::has_bytes && lanes == Unit::rows, byte_dots = config::has_byte_dots && lanes == 16;
  static constexpr bool pairs = config::has_bf16_pairs && std::same_as<P, precision::bf16>;
  /// Whether many rows of f32 are multiplied with packed weights as sums of bf16 numbers, where rows need not have the same bits however many there are.
  static constexpr bool pieces = Unit::there && lanes == Unit::rows && std::same_as<P, precision::f32>;
  /// Largest number of terms that one step multiplies.
  static constexpr std::int64_t per_step = tiles || pairs ? 2 : 1;
  /// A residual may be updated in place: element i of an epilogue operand is read before element i of the output is written.
  static constexpr std::uint32_t inplace = 0xfc;
  static constexpr bool epilogue = true;
  static constexpr bool reads_blocks = true;
  /// Returns the longest serial sum: the terms of a block of K, then the other blocks. A gemv has shorter sums; so do tiles, which add 16 terms, two
  /// sums and one sum for each tile of K, and pieces.
  static constexpr std::int64_t chain(std::int64_t K) {
    const auto of = [K](std::int64_t step) {
      const std::int64_t blocks = larger_of(1, divide_up(K, step * blocking::depth));
      return divide_up(K, blocks) + (step - 1) + blocks - 1;
    };
    return larger_of(of(per_step), of(1));
  }

  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& y = s.out[0];
    const std::int64_t M = y[-2], N = y[-1], K = s.in[0][-1], batches = N == 0 || M == 0 ? 0 : y.count() / (N * M);
    // Leading axes may become rows.
    if (s.constants<op::matmul>().a8)
      return larger_of(portable::a8_gemm::bytes(M * batches, K),
                       byte_tiles || byte_dots
                           ? larger_of(a8_tile_gemm<a8_dot_product>::bytes(M * batches, K), a8_packed_gemm<P>::bytes(M * batches, K))
                           : 0);
    const std::int64_t vectors =
        4 * (blocking::copies * gemm_partition::packed_floats(M, N, K, batches) + gemm_partition::waiting_floats(M * batches, N, K));
    if constexpr (pieces)
      return s.constants<op::matmul>().packed ? larger_of(vectors, gemm_by_pieces<Unit>::bytes(M * batches, K)) : vectors;
    else return vectors;
  }

  static_assert(!config::has_bf16_tiles || config::has_bf16_pairs, "packed weights are for both");

  /// Returns the size of the packed copy of a right operand with contiguous rows that a gemm by columns reads. In other cases packing per step costs
  /// little.
  static constexpr std::int64_t packed(const step_shapes& s) requires tiles {
    const shape &y = s.out[0], &b = s.in[1];
    const std::int64_t rows = y.count() / larger_of(1, y[-1]);
    return rows > gemv::most_rows && by_columns(rows, b[-1]) ? packed_weight(b[-2], b[-1]).elements() : 0;
  }
  /// Packs a weight of bf16.
  static void pack(const view& w, void* to, thread_pool* pool) requires tiles {
    constexpr std::int64_t rows = 32;
    const std::int64_t K = w.dims[0], N = w.dims[1];
    const packed_weight copy(K, N);
    packed_weight::forget(to);
    pool->parallel(divide_up(K, rows), [&](std::int64_t t, int) {
      exponents found;
      copy.take(w.as<const bfloat16>() + t * rows * N, t * rows, smaller(K, (t + 1) * rows), to, false, found);
      packed_weight::note(to, found);
    });
  }

  /// Whether products of a8 read weights whose codes are unpacked once.
  static constexpr bool unpacks_codes = byte_dots && !byte_tiles && !tiles;
  /// Returns the size of the packed copy of a weight (N, K) of the program's precision whose transpose the kernel reads: panels of f32, or of pairs of bf16,
  /// unless they are slow. Pieces follow panels of f32 unless the product is batch invariant. Products of a8 have codes instead.
  static constexpr std::int64_t packed_transposed(const step_shapes& s)
      requires(std::same_as<P, precision::f32> || tiles || pairs || unpacks_codes) {
    const std::int64_t K = s.in[1][-2], N = s.in[1][-1];
    if (s.constants<op::matmul>().a8)
      return unpacks_codes ? divide_up(a8_packed_weight(N, K).bytes(), std::int64_t(sizeof(typename P::storage))) : 0;
    if constexpr (tiles) return packed_weight(K, N).elements();
    else if constexpr (pairs) return std::is_constant_evaluated() || Pairs::fast() ? packed_weight(K, N).elements() : 0;
    else if constexpr (!std::same_as<P, precision::f32>) return 0;
    else return weight_panels(N, K).elements() + (has_pieces(s.constants<op::matmul>(), N, K) ? weight_pieces(N, K).elements() : 0);
  }
  static constexpr bool packs_blocks = tiles;
  /// Packs a weight (N, K) of the program's precision, or in blocks.
  /// @param elements  the size of the copy
  static void pack_transposed(const view& w, void* to, thread_pool* pool, [[maybe_unused]] std::int64_t elements = 0)
      requires(std::same_as<P, precision::f32> || tiles || pairs || unpacks_codes) {
    const std::int64_t N = w.dims[0], K = w.dims[1];
    if constexpr (unpacks_codes)
      if (in_blocks(w.type)) {
        const a8_packed_weight copy(N, K);
        a8_packed_weight::set_type(to, w.type);
        return pool->parallel(copy.panels(), [&](std::int64_t p, int) { copy.pack(portable::block_weight::of(w), p, to); });
      }
    if constexpr (tiles || pairs) {
      const packed_weight copy(K, N);
      packed_weight::forget(to);
      pool->parallel(copy.count(), [&](std::int64_t p, int) {
        exponents found;
        if (in_blocks(w.type)) copy.take_blocks(portable::block_weight::of(w), p, to, found);
        else copy.take_transposed(w.as<const bfloat16>(), p, to, found);
        packed_weight::note(to, found);
      });
    } else if constexpr (std::same_as<P, precision::f32>) {
      const weight_panels copy(N, K);
      pool->parallel(copy.count(), [&](std::int64_t p, int) { copy.pack(w.as<const float>(), p, static_cast<float*>(to)); });
      if constexpr (pieces)
        if (elements > copy.elements() && Unit::permitted()) {
          const weight_pieces split(N, K);
          pool->parallel(split.count(),
                         [&](std::int64_t p, int) { split.pack(w.as<const float>(), p, static_cast<float*>(to) + copy.elements()); });
        }
    }
  }

  static void run(const launch& l) {
    if (l.out[0].dims.count() == 0) return;
    with_operands(l, [&]<class Operands>(std::type_identity<Operands>) { make<Operands>(l); });
  }
  /// Makes the choice of `run` among variants, if it has one.
  static void consider(const launch& l) {
    const auto c = l.constants<op::matmul>();
    if (l.out[0].dims.count() == 0 || c.a8 || c.packed || in_blocks(l.in[1].type)) return;
    with_operands(l, [&]<class Operands>(std::type_identity<Operands>) { choose<Operands>(l, portable::matmul_shape(l)); });
  }

 private:
  template <class F> static void with_operands(const launch& l, const F& f) {
    if constexpr (per_step == 2)
      if (l.in[0].type == dtype::bf16 && (l.in[1].type == dtype::bf16 || in_blocks(l.in[1].type))) {
        if constexpr (tiles)
          if (Unit::permitted()) return f(std::type_identity<unit_operands<Unit>>{});
        if constexpr (pairs)
          if (Pairs::fast() || l.constants<op::matmul>().packed) return f(std::type_identity<pair_operands>{});
      }
    f(std::type_identity<f32_operands>{});
  }
  template <class Operands> static const product_variant<Operands>& choose(const launch& l, const portable::matmul_shape& s) {
    if (l.choices == nullptr && l.variant >= 0) return product_variants<Operands>[std::size_t(l.variant)];
    const auto c = l.constants<op::matmul>();
    product_problem p{&s, size_of(l.in[1].type), c.batch_invariant};
    p.in_place = l.body.empty() && l.out[0].type == dtype::f32 && c.format.type() == dtype::f32 && c.alpha == 1 && c.operands == 2;
    p.in_panels = l.in[0].type == dtype::f32 && l.in[1].type == dtype::f32;
    p.copies_rows = Operands::copied(l.in[0], s.a_row, s.a_k, s.M, s.K);
    p.strides_cost = made_by_intel();
    p.any_order = l.choices != nullptr && !l.choices->wanted.empty();
    if (l.pool != nullptr) p.threads = smaller(l.pool->size(), portable::max_workers), p.rates = l.pool->rates;
    return *choose_kernel(product_variants<Operands>, p, l.choices).variant;
  }
  template <bool Dots = byte_dots> static const portable::a8_panels& rounded_panels() {
    if constexpr (Dots)
      return made_by_intel() ? a8_dot_panels < Dots ? 4 : 0 > : a8_dot_panels < Dots ? 1 : 0 > ;  // one run of bytes, as in gemv
    else if constexpr (config::has_byte_products) return a8_panels;
    else return portable::plain_a8_panels;
  }

  static void rounded(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& finish) {
    if constexpr (unpacks_codes)
      if (l.constants<op::matmul>().packed) return a8_packed_gemm<P>(l, s, finish).run();
    if (a8_in_tiles(s)) {
      if constexpr (byte_tiles)
        if (Unit::bytes_permitted()) return a8_tile_gemm<a8_unit_product<Unit>>(l, s, finish).run();
      if constexpr (byte_dots) return a8_tile_gemm<a8_dot_product>(l, s, finish).run();
    }
    portable::a8_gemm(l, s, finish, rounded_panels()).run();
  }

  template <class Operands> static void make(const launch& l) {
    const portable::matmul_shape s(l);
    const portable::gemm_epilogue finish(l, s);
    if (l.constants<op::matmul>().a8) return rounded(l, s, finish);
    if constexpr (std::same_as<P, precision::f32>)
      if (const auto c = l.constants<op::matmul>(); c.packed) {
        if constexpr (pieces)
          if (has_pieces(c, s.N, s.K) && s.M >= gemm_by_pieces<Unit>::least_rows && s.batches == 1 && Unit::permitted()) {
            auto* const weight = l.in[1].as<float>();
            const std::int64_t panels = weight_panels(s.N, s.K).elements(), bytes = gemm_by_pieces<Unit>::bytes(s.M, s.K);
            const std::int64_t floats = blocking::copies * gemm_partition::packed_floats(s.M, s.N, s.K, 1);
            return gemm_by_pieces<Unit>(l, s, finish, weight, weight + panels, l.scratch, larger_of(bytes, 4 * floats)).run();
          }
        return gemm_by_panels<P>(l, s, finish, true).run();
      }
    if constexpr (tiles)
      if constexpr (std::same_as<Operands, unit_operands<Unit>>)
        if (l.constants<op::matmul>().packed || in_blocks(l.in[1].type))
          if (const gemm_by_unit<Unit> of(l, s, finish); of.takes()) return of.run();
    if constexpr (pairs)
      if constexpr (std::same_as<Operands, pair_operands>)
        if (l.constants<op::matmul>().packed)
          if (const gemm_by_pairs<Operands> of(l, s, finish); of.takes()) return of.run();
    auto* packed = static_cast<float*>(l.scratch);
    float* waiting = packed + blocking::copies * gemm_partition::packed_floats(s.M, s.N, s.K, s.batches);
    if (in_blocks(l.in[1].type)) {
      // As with packed weights, rows of a matrix unit have the same bits in each of the gemms.
      if (l.in[0].type == dtype::f32 && block_gemv::takes(s)) block_gemv(l, s, finish, packed).run();
      else if (std::same_as<Operands, f32_operands>) gemm_by_rows<Operands>(l, s, finish, false, packed, waiting).run();
      else gemm_by_columns<Operands>(l, s, finish, packed, waiting).run();
    } else if (Operands::keeps && l.constants<op::matmul>().packed) {
      gemm_by_columns<Operands>(l, s, finish, packed, waiting).run();
    } else {
      using enum product_algorithm;
      const auto& v = choose<Operands>(l, s);
      if (v.how == gemv) native::gemv(l, s, finish, packed).run(v.task_bytes);
      else if (v.how == by_panels) gemm_by_panels<P>(l, s, finish, false).run();
      else if (v.how == by_columns) gemm_by_columns<Operands>(l, s, finish, packed, waiting).run();
      else gemm_by_rows<Operands>(l, s, finish, v.how == pack_left, packed, waiting).run();
    }
  }
  /// Whether the packed copy of a weight has pieces.
  static constexpr bool has_pieces([[maybe_unused]] const op::matmul::constants& c, [[maybe_unused]] std::int64_t N,
                                   [[maybe_unused]] std::int64_t K) {
    if constexpr (pieces) return !c.batch_invariant && gemm_by_pieces<Unit>::takes(N, K);
    else return false;
  }
  static constexpr bool by_columns(std::int64_t M, std::int64_t N) { return M < N && M <= 2 * blocking::block_rows; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::matmul, P, kernels::native> : native::matmul<P> {};
}  // namespace isotope::cpu
