#pragma once
/// A gemm by rows: all threads pack the smaller operand into panels once, in chunks of at most 4 MB that L3 holds. The rows of the other operand are
/// read in place, a few at a time and once per cell. Where the packed operand is A, cells hold C^T and are transposed in registers at the end. So the
/// weights of x W^T are neither copied nor transposed.
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/transposed_part.hpp>
#include <isotope/kernels/cpu/native/gemm/two_phases.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Operands> class gemm_by_rows {
 public:
  /// @param transposed  A is packed and the rows are those of B^T; otherwise B is packed and the rows are those of A
  gemm_by_rows(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, bool transposed, float* packed,
               float* waiting)
      : l_(l),
        s_(s),
        epilogue_(epilogue),
        transposed_(transposed),
        V_(transposed ? s.M : s.N),
        R_(transposed ? s.N : s.M),
        v_stride_(transposed ? s.a_row : s.b_col),
        v_k_(transposed ? s.a_k : s.b_k),
        r_stride_(transposed ? s.b_col : s.a_row),
        r_k_(transposed ? s.b_k : s.a_k),
        cut_(V_, R_, s.K, Operands::per_step, Operands::k_unit, Operands::v_unit),
        packed_(packed),
        waiting_(waiting),
        packed_floats_(gemm_partition::packed_floats(s.M, s.N, s.K, s.batches)) {}

  void run() const {
    cut_.chunks(s_.batches, V_, R_, s_.K, [&](const gemm_chunk& c) { make(c); });
  }

 private:
  static constexpr std::int64_t block_panels = Operands::block_rows / blocking::cols;
  static constexpr std::int64_t widest = 2 * block_panels * blocking::cols;  // largest width of a cell that is not computed in place

  const view& packed_side() const { return l_.in[transposed_ ? 0 : 1]; }
  const view& row_side() const { return l_.in[transposed_ ? 1 : 0]; }
  std::int64_t packed_offset(std::int64_t batch) const { return transposed_ ? s_.offset_a(batch) : s_.offset_b(batch); }
  std::int64_t row_offset(std::int64_t batch) const { return transposed_ ? s_.offset_b(batch) : s_.offset_a(batch); }
  bool in_place() const { return !transposed_ && epilogue_.direct(); }

  void make(const gemm_chunk& c) const {
    const vector_panels panels(c.vs);
    const auto cells = gemm_cells::of_rows<Operands>(c.vs, c.rs, c.batches, cut_.depth, in_place(), Operands::transposes(r_k_));
    const std::int64_t blocks = divide_up(c.ks, cut_.depth), packs = c.batches * blocks * panels.count();
    const auto pack_one = [&](std::int64_t t, int copy) {
      const std::int64_t n = panels.count();
      pack(c, panels, t / (n * blocks), t / n % blocks * cut_.depth, t % n, copy);
    };
    const auto fill_one = [&](std::int64_t t, int copy) { fill(c, panels, cells.by_rows(t), copy); };  // of rows there may be many
    in_two_phases(l_, blocking::copies, packs, pack_one, c.batches * cells.count(), fill_one,
                  product_nsec(c.batches, c.vs, c.rs, c.ks / Operands::per_step));
  }

  /// Packs panel p of one block of K.
  void pack(const gemm_chunk& c, const vector_panels& panels, std::int64_t batch, std::int64_t k0, std::int64_t p, int copy) const {
    const std::int64_t k = smaller(cut_.depth, c.ks - k0);
    if (in_blocks(packed_side().type))
      return Operands::unpack(portable::block_weight(packed_side()), c.v + panels.start(p), panels.elems(p), c.k + k0, k, panels.width(p),
                              block_at(c, panels, batch, k0, copy) + panel_at(panels, p, k), row_side().type);
    const std::int64_t from = packed_offset(c.batch + batch) + (c.v + panels.start(p)) * v_stride_ + (c.k + k0) * v_k_;
    Operands::with_type(packed_side(), [&](const auto* x) {
      Operands::pack(x + from, v_k_, v_stride_, k, panels.elems(p), panels.width(p),
                     block_at(c, panels, batch, k0, copy) + panel_at(panels, p, k));
    });
  }
  /// Returns the packed panels of one block of K.
  float* block_at(const gemm_chunk& c, const vector_panels& panels, std::int64_t batch, std::int64_t k0, int copy) const {
    return packed_ + copy * packed_floats_ + batch * floats(panels, c.ks) + floats(panels, k0);
  }
  /// Returns the size of packed panels whose blocks of K have k terms in all.
  std::int64_t floats(const vector_panels& panels, std::int64_t k) const {
    return panels.start(panels.count()) * Operands::packed_steps(k) + divide_up(k, cut_.depth) * panels.count() * Operands::head;
  }
  /// Returns the offset of panel p in a block of k terms.
  static std::int64_t panel_at(const vector_panels& panels, std::int64_t p, std::int64_t k) {
    return panels.start(p) * Operands::packed_steps(k) + p * Operands::head;
  }

  /// @param at  relative to the chunk
  void fill(const gemm_chunk& c, const vector_panels& panels, const gemm_cell& at, int own) const {
    alignas(64) float tile[blocking::tile_floats];
    alignas(64) float copy[Operands::copy::floats(Operands::per_step * blocking::depth)];
    alignas(64) float pairs[Operands::rounds ? Operands::tile_rows * widest / 2 : 1];  // a class would set the array to zero
    auto* const small_tile = reinterpret_cast<bfloat16*>(pairs);
    [[maybe_unused]] const typename Operands::unit held{};
    const typename Operands::copy here(copy, cut_.depth, r_k_ == 1);
    const std::int64_t batch = c.batch + at.batch, r0 = c.r + at.m, v0 = panels.start(at.p0);
    place to = place_of(c, panels, at, tile);
    const bool old = c.k > 0 || (in_place() && epilogue_.adds());
    // Rows are finished while they are in L1; if K is one block, they all use the same place.
    const bool by_strips = !transposed_ && !epilogue_.direct() && !rounded() && !cut_.waits, one_strip = by_strips && c.ks <= cut_.depth;
    const bool rounded_strips = by_strips && finishes_rounded();
    Operands::with_type(row_side(), [&](const auto* x) {
      x += row_offset(batch) + r0 * r_stride_ + c.k * r_k_;
      for (std::int64_t k0 = 0; k0 < c.ks || k0 == 0; k0 += cut_.depth) {
        const std::int64_t k = smaller(cut_.depth, c.ks - k0);
        const float* block = block_at(c, panels, at.batch, k0, own);
        if (!transposed_ && rounded() && c.k + k0 + k >= s_.K)
          to.round_to(l_.out[0].as<bfloat16>() + (batch * s_.M + r0) * s_.N + c.v + v0, s_.N);
        for (std::int64_t r = 0; r < at.rows; r += Operands::tile_rows) {
          const std::int64_t rows = smaller(Operands::tile_rows, at.rows - r);
          auto taken = Operands::take(x + r * r_stride_ + k0 * r_k_, r_stride_, r_k_, rows, k, at.p1 - at.p0, here);
          const bool more = r + Operands::tile_rows < at.rows;
          const std::int64_t next_r = more ? r + Operands::tile_rows : 0, next_k = more ? k0 : k0 + k;
          const std::int64_t next_rows = smaller(Operands::tile_rows, at.rows - next_r), next_ks = smaller(cut_.depth, c.ks - next_k);
          [[maybe_unused]] const coming next(x + next_r * r_stride_ + next_k * r_k_, r_k_, r_stride_, next_ks, next_rows);
          place strip = to.part(one_strip ? 0 : r, 0);
          if (rounded_strips && k0 + k >= c.ks) strip.round_to(small_tile, widest);
          for (std::int64_t p = at.p0; p < at.p1; ++p) {
            auto packed = Operands::packed(block + panel_at(panels, p, k), panels.width(p), panels.elems(p));
            const place part = strip.part(0, panels.start(p) - v0);
            if constexpr (read_in_place<decltype(x)>())
              if (r_k_ == 1 && panels.count() <= rows_ahead::most_panels) {
                panel_gemm(taken, rows, packed, part, k, old || k0 > 0, ahead_of(x, c, at, r, k0, p));
                continue;
              }
            if constexpr (Operands::fetches) next.fetch(p - at.p0, at.p1 - at.p0);
            panel_gemm(taken, rows, packed, part, divide_up(k, Operands::per_step), old || k0 > 0);
          }
          if (by_strips && k0 + k >= c.ks) {
            const std::int64_t v1 = smaller(V_, c.v + panels.start(at.p1));
            if (rounded_strips) epilogue_.finish_rounded(batch, r0 + r, r0 + r + rows, c.v + v0, v1, small_tile, widest);
            else epilogue_.finish(batch, r0 + r, r0 + r + rows, c.v + v0, v1, strip.at, strip.ld);
          }
        }
      }
    });
    if (by_strips || c.k + c.ks < s_.K) return;
    if (transposed_) {
      transpose_cell(batch, c.v + v0, smaller(V_, c.v + panels.start(at.p1)), r0, r0 + at.rows, to);
    } else if (!epilogue_.direct() && !rounded()) {
      epilogue_.finish(batch, r0, r0 + at.rows, c.v + v0, smaller(V_, c.v + panels.start(at.p1)), to.at, to.ld);
    }
  }

  /// Whether f32 rows are multiplied where they are.
  template <class Pointer> static constexpr bool read_in_place() {
    return std::is_same_v<Operands, f32_operands> && std::is_same_v<Pointer, const float*>;
  }
  /// Returns the part of the next tile that is prefetched while rows [r, r + tile_rows) of block k0 meet panel p: of the next rows, of the next block of
  /// K, or of the next cell if it is below; the rows themselves where the next tile is not whole.
  /// @param x  row 0 of the cell
  rows_ahead ahead_of(const float* x, const gemm_chunk& c, const gemm_cell& at, std::int64_t r, std::int64_t k0, std::int64_t p) const {
    const std::int64_t n = at.p1 - at.p0, k = smaller(cut_.depth, c.ks - k0);
    std::int64_t next_r = r + Operands::tile_rows, next_k = k0;
    if (next_r >= at.rows) {
      next_k = k0 + k < c.ks ? k0 + k : 0;
      next_r = next_k > 0 ? 0 : at.rows;
    }
    if (c.r + at.m + next_r + Operands::tile_rows > R_) next_r = r, next_k = k0;
    return {x + next_r * r_stride_ + next_k + smaller(cut_.depth, c.ks - next_k) * (p - at.p0) / n, larger_of(1, rows_ahead::line / n)};
  }

  bool rounded() const { return Operands::rounds && epilogue_.rounded(); }
  bool finishes_rounded() const { return Operands::rounds && epilogue_.finishes_rounded(); }
  place place_of(const gemm_chunk& c, const vector_panels& panels, const gemm_cell& at, float* tile) const {
    const std::int64_t v0 = panels.start(at.p0);
    if (in_place()) return {l_.out[0].as<float>() + ((c.batch + at.batch) * s_.M + c.r + at.m) * s_.N + c.v + v0, s_.N, false};
    if (cut_.waits) return {waiting_ + at.m * cut_.v_chunk + v0, cut_.v_chunk, true};
    return {tile, panels.start(at.p1) - v0, true};
  }

  /// Makes C[m0:m1, n0:n1] from the cell whose rows are the columns of C.
  void transpose_cell(std::int64_t batch, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, const place& from) const {
    const auto transpose_part = [&](std::int64_t m, std::int64_t n, std::int64_t n_end, bfloat16* y, std::int64_t ld) {
      const transposed_part part{from.at + (n - n0) * from.ld + m - m0, from.ld, smaller(2 * lanes, n_end - n), smaller(lanes, m1 - m)};
      if (!transpose_rounded<false>(part, y, ld)) transpose_rounded<true>(part, y, ld);
    };
    if (rounded()) {
      for (std::int64_t m = m0; m < m1; m += lanes)
        for (std::int64_t n = n0; n < n1; n += 2 * lanes)
          transpose_part(m, n, n1, l_.out[0].as<bfloat16>() + (batch * s_.M + m) * s_.N + n, s_.N);
      return;
    }
    if (finishes_rounded()) {
      alignas(64) float pairs[lanes * 512 / 2];
      auto* const some = reinterpret_cast<bfloat16*>(pairs);
      for (std::int64_t m = m0; m < m1; m += lanes)
        for (std::int64_t n = n0; n < n1; n += 512) {
          const std::int64_t end = smaller(n + 512, n1);
          for (std::int64_t j = n; j < end; j += 2 * lanes) transpose_part(m, j, end, some + j - n, 512);
          epilogue_.finish_rounded(batch, m, smaller(m + lanes, m1), n, end, some, 512);
        }
      return;
    }
    alignas(64) float some[lanes * 256];
    for (std::int64_t m = m0; m < m1; m += lanes) {
      const std::int64_t rows = smaller(lanes, m1 - m);
      for (std::int64_t n = n0; n < n1; n += 256) {
        const std::int64_t cols = smaller(256, n1 - n);
        const bool straight = epilogue_.direct() && !epilogue_.adds() && cols % lanes == 0 && rows == lanes;
        float* to = straight ? l_.out[0].as<float>() + (batch * s_.M + m) * s_.N + n : some;
        const std::int64_t ld = straight ? s_.N : 256;
        for (std::int64_t j = 0; j < cols; j += lanes) {
          vector r[lanes] = {};
          const float* at = from.at + (n - n0 + j) * from.ld + m - m0;
          const std::int64_t have = smaller(lanes, cols - j);
          for (std::int64_t i = 0; i < have; ++i) __builtin_memcpy(&r[i], at + i * from.ld, sizeof r[i]);
          transpose(r);
          for (std::int64_t i = 0; i < lanes; ++i) __builtin_memcpy(to + i * ld + j, &r[i], sizeof r[i]);
        }
        if (!straight) epilogue_.finish(batch, m, m + rows, n, n + cols, some, ld);
      }
    }
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  bool transposed_;
  std::int64_t V_, R_, v_stride_, v_k_, r_stride_, r_k_;
  gemm_partition cut_;
  float *packed_, *waiting_;
  std::int64_t packed_floats_;  // of one copy
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
