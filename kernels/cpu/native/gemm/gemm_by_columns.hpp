#pragma once
/// A gemm by columns, for few rows times a matrix whose rows are contiguous, as in the gradient dy W.
///
/// Each task makes a cell of C, one block of K after another: it takes a panel of B (in place, packed by the task, or pre-packed as in
/// packed_weight.hpp) and multiplies it with a block of A that stays in L2. B is not packed into shared memory; each row of cells, up to 256 rows of
/// C, reads it once. A is read in place, or all threads first copy a chunk of at most 5 MB.
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/two_phases.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Operands> class gemm_by_columns {
 public:
  gemm_by_columns(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, float* packed, float* waiting)
      : l_(l),
        s_(s),
        epilogue_(epilogue),
        cut_(s.M, s.N, s.K, Operands::per_step, Operands::k_unit, Operands::v_unit),
        packed_(packed),
        waiting_(waiting),
        packed_floats_(gemm_partition::packed_floats(s.M, s.N, s.K, s.batches)),
        weight_(s.K, s.N),
        kept_(l.constants<op::matmul>().packed),
        blocks_(in_blocks(l.in[1].type)),
        whole_strips_((kept_ || blocks_) && Operands::reads_whole_strips(s.a_row, s.a_k, s.K)),
        copied_(!whole_strips_ && Operands::copied(l.in[0], s.a_row, s.a_k, s.M, s.K)) {}

  void run() const {
    cut_.chunks(s_.batches, s_.M, s_.N, s_.K, [&](const gemm_chunk& c) { make(c); });
  }

 private:
  void make(const gemm_chunk& c) const {
    const vector_panels panels(c.rs);
    const auto cells = gemm_cells::of_columns<Operands>(c.vs, c.rs, c.batches, epilogue_.direct());
    const std::int64_t blocks = divide_up(c.ks, cut_.depth), strips = divide_up(c.vs, Operands::tile_rows);
    const double nsec = product_nsec(c.batches, c.vs, c.rs, c.ks / Operands::per_step);
    const auto copy_one = [&](std::int64_t t, int own) {
      copy(c, t / (blocks * strips), t / strips % blocks, t % strips * Operands::tile_rows, own);
    };
    const auto fill_one = [&](std::int64_t t, int own) { fill(c, panels, cells.by_rows(t), own); };
    const auto copy_rest = [&](std::int64_t t, int own) { copy(c, t / blocks, t % blocks, (strips - 1) * Operands::tile_rows, own); };
    if (whole_strips_)
      return in_two_phases(l_, blocking::copies, in_place(c, (strips - 1) * Operands::tile_rows) ? 0 : c.batches * blocks, copy_rest,
                           c.batches * cells.count(), fill_one, nsec);
    in_two_phases(l_, blocking::copies, copied_ ? c.batches * blocks * strips : 0, copy_one, c.batches * cells.count(), fill_one, nsec);
  }

  /// Whether the strip of A from row m on is read where it is, though others are copied.
  bool in_place(const gemm_chunk& c, std::int64_t m) const {
    return whole_strips_ && smaller(Operands::tile_rows, c.vs - m) % Operands::strip_unit == 0;
  }
  /// Copies the rows of A from m on, one register tile of them, for one block of K.
  void copy(const gemm_chunk& c, std::int64_t batch, std::int64_t block, std::int64_t m, int own) const {
    const std::int64_t k0 = block * cut_.depth, from = s_.offset_a(c.batch + batch) + (c.v + m) * s_.a_row + (c.k + k0) * s_.a_k;
    Operands::with_type(l_.in[0], [&](const auto* a) {
      strip(c, batch, block, m, own)
          .take(a + from, s_.a_row, s_.a_k, smaller(Operands::tile_rows, c.vs - m), smaller(cut_.depth, c.ks - k0));
    });
  }
  typename Operands::copy strip(const gemm_chunk& c, std::int64_t batch, std::int64_t block, std::int64_t m, int own) const {
    const std::int64_t blocks = divide_up(c.ks, cut_.depth), strips = divide_up(c.vs, Operands::tile_rows);
    return {
        packed_ + own * packed_floats_ + ((batch * blocks + block) * strips + m / Operands::tile_rows) * Operands::copy::floats(cut_.depth),
        cut_.depth, s_.a_k == 1};
  }

  typename Operands::rows rows_at(const gemm_chunk& c, std::int64_t batch, std::int64_t k0, std::int64_t m, int own) const {
    if (copied_ || (whole_strips_ && !in_place(c, m))) return strip(c, batch, k0 / cut_.depth, m, own).block();
    return Operands::in_place(l_.in[0], s_.offset_a(c.batch + batch) + (c.v + m) * s_.a_row + (c.k + k0) * s_.a_k, s_.a_row, s_.a_k);
  }

  /// @param at  relative to the chunk
  void fill(const gemm_chunk& c, const vector_panels& panels, const gemm_cell& at, int own) const {
    alignas(64) float tile[blocking::tile_floats];
    constexpr std::int64_t widest = blocking::tile_floats / Operands::block_rows / blocking::cols * blocking::cols;
    alignas(64) float pairs[Operands::rounds ? Operands::block_rows * widest / 2 : 1];  // a class would set the array to zero
    auto* const small_tile = reinterpret_cast<bfloat16*>(pairs);
    alignas(64) float right[blocking::depth * blocking::cols + Operands::head];
    [[maybe_unused]] const typename Operands::unit held{};
    typename Operands::rows left[Operands::block_rows / Operands::tile_rows + 1];
    const std::int64_t steps = divide_up(at.rows, Operands::tile_rows);
    const std::int64_t batch = c.batch + at.batch, m0 = c.v + at.m, n0 = panels.start(at.p0);
    place to = place_of(c, panels, at, tile);
    const bool old = c.k > 0 || (epilogue_.direct() && epilogue_.adds());
    Operands::with_type(l_.in[1], [&](const auto* b) {
      b += s_.offset_b(batch) + c.r * s_.b_col + c.k * s_.b_k;
      for (std::int64_t k0 = 0; k0 < c.ks || k0 == 0; k0 += cut_.depth) {
        const std::int64_t k = smaller(cut_.depth, c.ks - k0);
        if (c.k + k0 + k >= s_.K) {
          if (rounded()) to.round_to(l_.out[0].as<bfloat16>() + (batch * s_.M + m0) * s_.N + c.r + n0, s_.N);
          else if (finishes_rounded()) to.round_to(small_tile, widest);
        }
        for (std::int64_t i = 0, m = 0; i < steps; ++i, m += Operands::tile_rows) left[i] = rows_at(c, at.batch, k0, at.m + m, own);
        for (std::int64_t p = at.p0; p < at.p1; ++p) {
          auto taken = panel_of(b, c, panels, k0, k, p, right);
          const bool more = p + 1 < at.p1;
          const std::int64_t next_p = more ? p + 1 : at.p0, next_k = more ? k0 : k0 + k;
          [[maybe_unused]] const coming next(b + next_k * s_.b_k + panels.start(next_p) * s_.b_col, s_.b_k, s_.b_col,
                                             smaller(cut_.depth, c.ks - next_k), panels.elems(next_p));
          for (std::int64_t i = 0; i < steps; ++i) {
            const std::int64_t m = i * Operands::tile_rows;
            if constexpr (Operands::fetches)
              if (!kept_ && !blocks_) next.fetch(i, steps);
            panel_gemm(left[i], smaller(Operands::tile_rows, at.rows - m), taken, to.part(m, panels.start(p) - n0),
                       divide_up(k, Operands::per_step), old || k0 > 0);
          }
        }
      }
    });
    if (c.k + c.ks < s_.K || epilogue_.direct() || rounded()) return;
    const std::int64_t n1 = c.r + smaller(c.rs, panels.start(at.p1));
    if (finishes_rounded()) epilogue_.finish_rounded(batch, m0, m0 + at.rows, c.r + n0, n1, small_tile, widest);
    else epilogue_.finish(batch, m0, m0 + at.rows, c.r + n0, n1, to.at, to.ld);
  }

  /// Returns panel p, terms [k0, k0 + k) of a chunk.
  /// @param room  space for a copy
  template <class T>
  typename Operands::panel panel_of(const T* b, const gemm_chunk& c, const vector_panels& panels, std::int64_t k0, std::int64_t k,
                                    std::int64_t p, float* room) const {
    const std::int64_t j = panels.start(p), elems = panels.elems(p), width = panels.width(p);
    if constexpr (Operands::keeps)
      if (kept_) return Operands::kept(l_.in[1].as<const float>(), weight_.at(c.k + k0, c.r + j), elems, width);
    if (blocks_) {
      Operands::unpack(portable::block_weight(l_.in[1]), c.r + j, elems, c.k + k0, k, width, room, l_.in[0].type);
      return Operands::packed(room, width, elems);
    }
    return Operands::once(b + k0 * s_.b_k + j * s_.b_col, s_.b_k, s_.b_col, k, elems, width, room);
  }

  bool rounded() const { return Operands::rounds && epilogue_.rounded(); }
  bool finishes_rounded() const { return Operands::rounds && epilogue_.finishes_rounded(); }
  place place_of(const gemm_chunk& c, const vector_panels& panels, const gemm_cell& at, float* tile) const {
    const std::int64_t n0 = panels.start(at.p0);
    if (epilogue_.direct()) return {l_.out[0].as<float>() + ((c.batch + at.batch) * s_.M + c.v + at.m) * s_.N + c.r + n0, s_.N, false};
    if (cut_.waits) return {waiting_ + at.m * cut_.r_chunk + n0, cut_.r_chunk, true};
    return {tile, panels.start(at.p1) - n0, true};
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  gemm_partition cut_;
  float *packed_, *waiting_;
  std::int64_t packed_floats_;  // of one copy
  packed_weight weight_;
  bool kept_;          // B is pre-packed
  bool blocks_;        // B is a weight in blocks, which each task unpacks
  bool whole_strips_;  // strips of A whose rows fill the operand format are read in place, a last one that does not is copied
  bool copied_;        // all of A is copied first
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
