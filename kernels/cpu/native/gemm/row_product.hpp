#pragma once
/// A product by rows: one operand, the smaller one, is packed into panels of vectors once, by all threads, a chunk of at most 4 MB that L3 holds;
/// the rows of the other one pass where they lie, a few at a time and each once per cell. Where the packed operand is A the cells stand the other
/// way round, and are turned in registers when they are done. So the weights of x W^T are neither copied nor turned.
#include <isotope/kernels/cpu/native/gemm/product_cut.hpp>
#include <isotope/kernels/cpu/native/gemm/terms.hpp>
#include <isotope/kernels/cpu/native/gemm/turned_part.hpp>
#include <isotope/kernels/cpu/native/gemm/two_phases.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

template <class Terms> class row_product {
 public:
  /// @param turned  A is packed and the rows are those of B^T; otherwise B is packed and the rows are those of A
  row_product(const launch& l, const portable::matmul_shape& s, const portable::matmul_result& result, bool turned, float* packed,
              float* waiting)
      : l_(l),
        s_(s),
        result_(result),
        turned_(turned),
        V_(turned ? s.M : s.N),
        R_(turned ? s.N : s.M),
        v_stride_(turned ? s.a_row : s.b_col),
        v_k_(turned ? s.a_k : s.b_k),
        r_stride_(turned ? s.b_col : s.a_row),
        r_k_(turned ? s.b_k : s.a_k),
        cut_(V_, R_, s.K, Terms::per_step, Terms::k_unit, Terms::v_unit),
        packed_(packed),
        waiting_(waiting),
        packed_floats_(product_cut::packed_floats(s.M, s.N, s.K, s.batches)) {}

  void run() const {
    cut_.chunks(s_.batches, V_, R_, s_.K, [&](const product_chunk& c) { make(c); });
  }

 private:
  static constexpr std::int64_t block_panels = Terms::block_rows / blocking::cols;
  static constexpr std::int64_t widest = 2 * block_panels * blocking::cols;  // of a cell that is not in place

  struct cell {
    std::int64_t batch, r, rs, p0, p1;  // within the chunk; panels [p0, p1)
  };

  const view& packed_side() const { return l_.in[turned_ ? 0 : 1]; }
  const view& row_side() const { return l_.in[turned_ ? 1 : 0]; }
  std::int64_t packed_offset(std::int64_t batch) const { return turned_ ? s_.offset_a(batch) : s_.offset_b(batch); }
  std::int64_t row_offset(std::int64_t batch) const { return turned_ ? s_.offset_b(batch) : s_.offset_a(batch); }
  bool in_place() const { return !turned_ && result_.direct(); }

  void make(const product_chunk& c) const {
    const vector_panels panels(c.vs);
    std::int64_t across = larger_of(1, block_panels * blocking::depth * Terms::per_step / cut_.depth),
                 down = in_place() ? Terms::block_rows : 0;
    if (!in_place()) {
      across = smaller(across, widest / blocking::cols);  // whole rows of narrow products: the fused body runs over several at a time
      const std::int64_t wide = larger_of(lanes, smaller(across * blocking::cols, panels.start(panels.count())));
      down = blocking::tile_floats / wide / Terms::tile_rows * Terms::tile_rows;
    }
    // Short rows before low blocks, unless each column of cells would turn all rows for itself.
    const std::int64_t low = Terms::turns(r_k_) ? Terms::tile_rows : 4 * Terms::tile_rows;
    while (divide_up(panels.count(), across) * divide_up(c.rs, down) * c.batches < 8) {
      if (across > 1 && down <= low) across /= 2;
      else if (down > Terms::tile_rows) down = whole(down / 2, Terms::tile_rows);
      else break;
    }
    across = even_part(panels.count(), across, 1);
    down = even_part(c.rs, down, Terms::tile_rows);
    const std::int64_t columns = divide_up(panels.count(), across), rows = divide_up(c.rs, down);
    const std::int64_t blocks = divide_up(c.ks, cut_.depth), packs = c.batches * blocks * panels.count();
    const double nsec = double(c.batches) * double(c.vs) * double(larger_of(c.ks / Terms::per_step, 8)) * (0.1 + double(c.rs) / 60.0);
    const auto pack_one = [&](std::int64_t t, int copy) {
      const std::int64_t n = panels.count();
      pack(c, panels, t / (n * blocks), t / n % blocks * cut_.depth, t % n, copy);
    };
    const auto fill_one = [&](std::int64_t t, int copy) {
      const std::int64_t j = t % columns, i = t / columns % rows;  // neighbours share rows, of which there may be many
      fill(c, panels,
           {t / (rows * columns), i * down, smaller(down, c.rs - i * down), j * across, smaller(panels.count(), (j + 1) * across)}, copy);
    };
    in_two_phases(l_, blocking::copies, packs, pack_one, c.batches * columns * rows, fill_one, nsec);
  }

  /// Panel p of one block of K.
  void pack(const product_chunk& c, const vector_panels& panels, std::int64_t batch, std::int64_t k0, std::int64_t p, int copy) const {
    const std::int64_t k = smaller(cut_.depth, c.ks - k0);
    const std::int64_t from = packed_offset(c.batch + batch) + (c.v + panels.start(p)) * v_stride_ + (c.k + k0) * v_k_;
    Terms::with_type(packed_side(), [&](const auto* x) {
      Terms::pack(x + from, v_k_, v_stride_, k, panels.elems(p), panels.width(p),
                  block_at(c, panels, batch, k0, copy) + panel_at(panels, p, k));
    });
  }
  /// The packed panels of one block of K.
  float* block_at(const product_chunk& c, const vector_panels& panels, std::int64_t batch, std::int64_t k0, int copy) const {
    return packed_ + copy * packed_floats_ + batch * floats(panels, c.ks) + floats(panels, k0);
  }
  /// Of packed panels, blocks of K with k terms in all.
  std::int64_t floats(const vector_panels& panels, std::int64_t k) const {
    return panels.start(panels.count()) * Terms::packed_steps(k) + divide_up(k, cut_.depth) * panels.count() * Terms::head;
  }
  /// Panel p in a block of k terms.
  static std::int64_t panel_at(const vector_panels& panels, std::int64_t p, std::int64_t k) {
    return panels.start(p) * Terms::packed_steps(k) + p * Terms::head;
  }

  void fill(const product_chunk& c, const vector_panels& panels, const cell& at, int own) const {
    alignas(64) float tile[blocking::tile_floats];
    alignas(64) float copy[Terms::copy::floats(Terms::per_step * blocking::depth)];
    alignas(64) float pairs[Terms::rounds ? Terms::tile_rows * widest / 2 : 1];  // not of a class: those would be set to zero
    auto* const small_tile = reinterpret_cast<bfloat16*>(pairs);
    [[maybe_unused]] const typename Terms::unit held{};
    const typename Terms::copy here(copy, cut_.depth, r_k_ == 1);
    const std::int64_t batch = c.batch + at.batch, r0 = c.r + at.r, v0 = panels.start(at.p0);
    place to = place_of(c, panels, at, tile);
    const bool old = c.k > 0 || (in_place() && result_.adds());
    // Rows are finished while they are in L1, those with one block of K all in the same place.
    const bool by_strips = !turned_ && !result_.direct() && !rounded() && !cut_.waits, one_strip = by_strips && c.ks <= cut_.depth;
    const bool rounded_strips = by_strips && finishes_rounded();
    Terms::with_type(row_side(), [&](const auto* x) {
      x += row_offset(batch) + r0 * r_stride_ + c.k * r_k_;
      for (std::int64_t k0 = 0; k0 < c.ks || k0 == 0; k0 += cut_.depth) {
        const std::int64_t k = smaller(cut_.depth, c.ks - k0);
        const float* block = block_at(c, panels, at.batch, k0, own);
        if (!turned_ && rounded() && c.k + k0 + k >= s_.K)
          to.round_to(l_.out[0].as<bfloat16>() + (batch * s_.M + r0) * s_.N + c.v + v0, s_.N);
        for (std::int64_t r = 0; r < at.rs; r += Terms::tile_rows) {
          const std::int64_t rows = smaller(Terms::tile_rows, at.rs - r);
          auto taken = Terms::take(x + r * r_stride_ + k0 * r_k_, r_stride_, r_k_, rows, k, at.p1 - at.p0, here);
          const bool more = r + Terms::tile_rows < at.rs;
          const std::int64_t next_r = more ? r + Terms::tile_rows : 0, next_k = more ? k0 : k0 + k;
          const std::int64_t next_rows = smaller(Terms::tile_rows, at.rs - next_r), next_ks = smaller(cut_.depth, c.ks - next_k);
          [[maybe_unused]] const coming next(x + next_r * r_stride_ + next_k * r_k_, r_k_, r_stride_, next_ks, next_rows);
          place strip = to.part(one_strip ? 0 : r, 0);
          if (rounded_strips && k0 + k >= c.ks) strip.round_to(small_tile, widest);
          for (std::int64_t p = at.p0; p < at.p1; ++p) {
            if constexpr (Terms::fetches) next.fetch(p - at.p0, at.p1 - at.p0);
            auto packed = Terms::packed(block + panel_at(panels, p, k), panels.width(p), panels.elems(p));
            panel_product(taken, rows, packed, strip.part(0, panels.start(p) - v0), divide_up(k, Terms::per_step), old || k0 > 0);
          }
          if (by_strips && k0 + k >= c.ks) {
            const std::int64_t v1 = smaller(V_, c.v + panels.start(at.p1));
            if (rounded_strips) result_.finish_rounded(batch, r0 + r, r0 + r + rows, c.v + v0, v1, small_tile, widest);
            else result_.finish(batch, r0 + r, r0 + r + rows, c.v + v0, v1, strip.at, strip.ld);
          }
        }
      }
    });
    if (by_strips || c.k + c.ks < s_.K) return;
    if (turned_) {
      turn(batch, c.v + v0, smaller(V_, c.v + panels.start(at.p1)), r0, r0 + at.rs, to);
    } else if (!result_.direct() && !rounded()) {
      result_.finish(batch, r0, r0 + at.rs, c.v + v0, smaller(V_, c.v + panels.start(at.p1)), to.at, to.ld);
    }
  }

  bool rounded() const { return Terms::rounds && result_.rounded(); }
  bool finishes_rounded() const { return Terms::rounds && result_.finishes_rounded(); }
  place place_of(const product_chunk& c, const vector_panels& panels, const cell& at, float* tile) const {
    const std::int64_t v0 = panels.start(at.p0);
    if (in_place()) return {l_.out[0].as<float>() + ((c.batch + at.batch) * s_.M + c.r + at.r) * s_.N + c.v + v0, s_.N, false};
    if (cut_.waits) return {waiting_ + at.r * cut_.v_chunk + v0, cut_.v_chunk, true};
    return {tile, panels.start(at.p1) - v0, true};
  }

  /// C[m0:m1, n0:n1] from the cell whose rows are the columns of C.
  void turn(std::int64_t batch, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1, const place& from) const {
    const auto turn_part = [&](std::int64_t m, std::int64_t n, std::int64_t n_end, bfloat16* y, std::int64_t ld) {
      const turned_part part{from.at + (n - n0) * from.ld + m - m0, from.ld, smaller(2 * lanes, n_end - n), smaller(lanes, m1 - m)};
      if (!turn_rounded<false>(part, y, ld)) turn_rounded<true>(part, y, ld);
    };
    if (rounded()) {
      for (std::int64_t m = m0; m < m1; m += lanes)
        for (std::int64_t n = n0; n < n1; n += 2 * lanes)
          turn_part(m, n, n1, l_.out[0].as<bfloat16>() + (batch * s_.M + m) * s_.N + n, s_.N);
      return;
    }
    if (finishes_rounded()) {
      alignas(64) float pairs[lanes * 512 / 2];
      auto* const some = reinterpret_cast<bfloat16*>(pairs);
      for (std::int64_t m = m0; m < m1; m += lanes)
        for (std::int64_t n = n0; n < n1; n += 512) {
          const std::int64_t end = smaller(n + 512, n1);
          for (std::int64_t j = n; j < end; j += 2 * lanes) turn_part(m, j, end, some + j - n, 512);
          result_.finish_rounded(batch, m, smaller(m + lanes, m1), n, end, some, 512);
        }
      return;
    }
    alignas(64) float some[lanes * 256];
    for (std::int64_t m = m0; m < m1; m += lanes) {
      const std::int64_t rows = smaller(lanes, m1 - m);
      for (std::int64_t n = n0; n < n1; n += 256) {
        const std::int64_t cols = smaller(256, n1 - n);
        const bool straight = result_.direct() && !result_.adds() && cols % lanes == 0 && rows == lanes;
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
        if (!straight) result_.finish(batch, m, m + rows, n, n + cols, some, ld);
      }
    }
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::matmul_result& result_;
  bool turned_;
  std::int64_t V_, R_, v_stride_, v_k_, r_stride_, r_k_;
  product_cut cut_;
  float *packed_, *waiting_;
  std::int64_t packed_floats_;  // of one copy
};

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
