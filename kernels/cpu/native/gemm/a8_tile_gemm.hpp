#pragma once
/// As portable::a8_gemm, with the same bits, for many rows, by one of two microkernels. A task makes a cell: it unpacks panels of the weight that stay in L1 for
/// all rows of the cell, and prefetches those that come next while it multiplies the first rows: with few rows it is bound by the bytes of the weight.
#include <isotope/kernels/cpu/native/gemm/a8_dot_product.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_round_rows.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_unit_product.hpp>
#include <isotope/kernels/cpu/native/gemm/cells.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Fewer rows are bound by the bytes of the weight.
inline bool a8_in_tiles(const portable::matmul_shape& s) { return s.M >= 4 && s.K > 0; }

template <class Product> class a8_tile_gemm {
 public:
  /// Bytes of scratch memory for M rows of a batch.
  static constexpr std::int64_t bytes(std::int64_t M, std::int64_t K) { return a8_row_bytes(M, K, most_rows); }
  a8_tile_gemm(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue)
      : l_(l), s_(s), epilogue_(epilogue), rows_(static_cast<a8_row_tile*>(l.scratch)), weight_(l.in[1]), blocks_(s.K / quantized::block) {}

  void run() const {
    a8_round_all<!Product::signed_codes>(l_, s_, weight_.type, most_rows, rows_, nullptr,
                                         [&](std::int64_t batch, std::int64_t m0, std::int64_t count) {
                                           if (weight_.type == dtype::q8_0) multiply<dtype::q8_0>(batch, m0, count);
                                           else multiply<dtype::q4_0>(batch, m0, count);
                                         });
  }

 private:
  static constexpr std::int64_t high = a8_row_tile::rows;
  static constexpr std::int64_t most_rows = 512;  // 480 KB for K = 768
  static constexpr std::int64_t cell_rows = 128;  // unpacking a tile of the weight takes 40 clocks, its products with 128 rows at least 256
  static constexpr std::int64_t cell_panels = 8;  // with 128 rows in f32, 64 KB of the stack, twice, and of L2
  static constexpr std::int64_t some_tiles = 24;  // of the weight, unpacked for the rows of a cell: 14 KB of L1
  static constexpr std::int64_t deep = 12;        // blocks of K at once: those of 16 rows take 8 KB of L1
  static_assert(high == quantized::panel_rows);

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  a8_row_tile* rows_;
  portable::block_weight weight_;
  std::int64_t blocks_;

  template <dtype Type> ISOTOPE_NOINLINE void multiply(std::int64_t batch, std::int64_t m0, std::int64_t count) const {
    const std::int64_t least = threads_of(l_) > 1 ? 16 : 1;  // a cell of its own configures the unit, 200 clocks
    const gemm_cells all{divide_up(s_.N, high), count, cell_panels, cell_rows};
    const auto cells = all.divided(least, gemm_cells::halved, high, cell_rows);
    portable::for_tasks(l_, cells.count(), double(count * s_.N * s_.K) * 0.003, [&](std::int64_t t, int) {
      const gemm_cell c = cells.by_panels(t);
      cell<Type>(batch, m0, c.m, c.m + c.rows, c.p0, c.p1);
    });
  }
  /// Makes rows [m, m1) behind m0 of panels [p, p1).
  template <dtype Type>
  ISOTOPE_NOINLINE void cell(std::int64_t batch, std::int64_t m0, std::int64_t m, std::int64_t m1, std::int64_t p, std::int64_t p1) const {
    constexpr std::int64_t record = quantized::record_bytes(Type);
    alignas(64) float tile[cell_rows * cell_panels * high], total[cell_rows * cell_panels * high];
    a8_panel_tile some[some_tiles];
    [[maybe_unused]] const typename Product::held held;
    const std::int64_t cols = (p1 - p) * high;
    for (std::int64_t joined = 0; joined < blocks_; joined += portable::a8_joined) {
      for (std::int64_t first = joined, end = smaller(blocks_, joined + portable::a8_joined); first < end; first += deep) {
        const std::int64_t blocks = smaller(deep, end - first), together = some_tiles / blocks;
        for (std::int64_t q = p; q < p1; q += together) {
          const std::int64_t panels = smaller(together, p1 - q);
          for (std::int64_t i = 0; i < panels; ++i)
            for (std::int64_t b = 0; b < blocks; ++b)
              some[i * blocks + b].template take<Type, Product::signed_codes>(weight_.data + ((q + i) * blocks_ + first + b) * record);
          const bool last = q + panels == p1, new_cell = last && first + blocks == blocks_;
          const std::int64_t next_panel = last && !new_cell ? p : q + panels, next_block = new_cell ? 0 : last ? first + blocks : first;
          const std::byte* next = weight_.data + (next_panel * blocks_ + next_block) * record;
          for (std::int64_t r = m; r < m1; r += high) {
            const bool ends = r + high >= m1;
            const a8_row_tile* a = rows_ + r / high * blocks_ + first;
            float* to = tile + (r - m) * cols + (q - p) * high;
            const auto product = m1 - r > 8   ? &Product::template make<16>
                                 : m1 - r > 4 ? &Product::template make<8>
                                              : &Product::template make<4>;
            product({a, some, blocks, panels, to, cols, first > joined, r == m || ends ? next : nullptr, ends, record, blocks_ * record});
          }
        }
      }
      if (blocks_ > portable::a8_joined) a8_join(tile, total, (m1 - m) * cols, joined > 0);
    }
    epilogue_.finish(batch, m0 + m, m0 + m1, p * high, smaller(s_.N, p1 * high), blocks_ > portable::a8_joined ? total : tile, cols);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
