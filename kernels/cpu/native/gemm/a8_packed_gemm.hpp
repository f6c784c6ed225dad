#pragma once
/// As portable::a8_gemm, with the same bits, with a weight whose codes are unpacked (a8_packed_weight.hpp), by products of unsigned and signed bytes (vpdpbusd).
///
/// Bound by the two ports that multiply: for each row, 16 columns and 32 terms they take 8 products of bytes and 2 of f32, so 10 clocks of 512 bits on Zen 4,
/// whose other two ports convert and add. Two panels of 12 blocks of K (14 KB) stay in L1 for all rows of a cell. Where the result is in bf16 and the body is one
/// of rounded_body, sums of four rows and two panels are finished in registers, so a result is written once, a cache line for each row.
#include <isotope/kernels/cpu/native/gemm/a8_dot_product.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_packed_weight.hpp>
#include <isotope/kernels/cpu/native/gemm/a8_round_rows.hpp>
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/rounded_body.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Needs config::has_byte_dots and vectors of 16 f32.
template <class P> class a8_packed_gemm {
  static constexpr std::int64_t high = a8_row_tile::rows, wide = 2 * quantized::panel_rows;
  static constexpr std::int64_t most_rows = 512, most_code_bytes = 512 << 10;  // of rounded rows, which stay in L2
  static constexpr std::int64_t most_sums = 16384;                             // of a cell: 64 KB of the stack and of L2
  static constexpr std::int64_t cell_pairs = 4;  // of panels, with 128 rows, where a body works on whole cells
  static constexpr std::int64_t deep = 12;       // blocks of K at once
  static constexpr int some = a8_dot_height;
  static constexpr bool rounds = std::same_as<P, precision::bf16>;
  using kind = body_kind;

 public:
  static constexpr std::int64_t bytes(std::int64_t M, std::int64_t K) { return a8_row_bytes(M, K, most_rows) + most_rows / high; }
  a8_packed_gemm(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue)
      : l_(l),
        s_(s),
        epilogue_(epilogue),
        rows_(static_cast<a8_row_tile*>(l.scratch)),
        small_(static_cast<bool*>(l.scratch) + a8_row_bytes(s.M, s.K, most_rows)),
        packed_(l.in[1].data),
        weight_(s.N, s.K),
        blocks_(s.K / quantized::block) {
    if constexpr (rounds)
      if (s.N % wide == 0 && s.batches == 1 && blocks_ <= portable::a8_joined) body_ = rounded_body(l, s, epilogue);
  }

  void run() const {
    const std::int64_t row_bytes = larger_of(1, blocks_ * std::int64_t(sizeof(a8_row_tile)) / high);
    std::int64_t most = most_rows;
    while (most > 64 && most * row_bytes > most_code_bytes) most /= 2;
    a8_round_all<true>(l_, s_, a8_packed_weight::type(packed_), most, rows_, small_,
                       [&](std::int64_t batch, std::int64_t m0, std::int64_t count) { multiply(batch, m0, count); });
  }

 private:
  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  a8_row_tile* rows_;
  bool* small_;  // of each group of 16 rows: whether products may be subnormal
  const void* packed_;
  a8_packed_weight weight_;
  std::int64_t blocks_;
  rounded_body body_;

  /// Rows [m, m1) behind m0 and pairs [q, q1) of panels.
  struct cell {
    std::int64_t batch, m0, m, m1, q, q1;
    std::int64_t cols() const { return (q1 - q) * wide; }
  };
  /// Blocks [first, end) of K, with those of the next panels to fetch.
  struct step {
    std::int64_t first, end;
    const a8_panel_tile* next;
  };

  void multiply(std::int64_t batch, std::int64_t m0, std::int64_t count) const {
    const std::int64_t pairs = divide_up(weight_.panels(), 2), rows = body_.known() ? most_rows : most_sums / (cell_pairs * wide);
    const gemm_cells all{pairs, count, body_.known() ? 1 : cell_pairs, rows};
    // Cells become lower only where that divides the rows.
    const auto cells = all.divided(cells_for(threads_of(l_)), gemm_cells::halved, high, 2 * count > rows ? high : rows);
    portable::for_tasks(l_, cells.count(), double(count * s_.N * s_.K) * 0.003, [&](std::int64_t t, int) {
      const gemm_cell at = cells.by_panels(t);
      const cell c{batch, m0, at.m, at.m + at.rows, at.p0, at.p1};
      if constexpr (rounds)
        if (body_.known()) return body_.with_kind([&](auto what) { fill<what>(c); });
      fill<kind::other>(c);
    });
  }

  template <kind Kind> ISOTOPE_NOINLINE void fill(const cell& c) const {
    alignas(64) float tile[most_sums], total[Kind == kind::other ? most_sums : 1], bias[wide] = {};
    const std::int64_t each = even_part(blocks_, deep, 1);
    [[maybe_unused]] const bool joins = blocks_ > portable::a8_joined;
    bool normal = true;
    if constexpr (Kind != kind::other) normal = body_.template widen_bias<Kind>(c.q * wide, bias);
    for (std::int64_t q = c.q; q < c.q1; ++q) {
      const std::int64_t panels = smaller(2, weight_.panels() - 2 * q);
      for (std::int64_t first = 0, end = 0; first < blocks_; first = end) {
        end = smaller(first + each, smaller(blocks_, (first / portable::a8_joined + 1) * portable::a8_joined));
        const step now{first, end, next_of(q, end)};
        if (panels == 2) rows_of<Kind, 2>(c, q, now, tile, bias, normal);
        else if constexpr (Kind == kind::other) rows_of<Kind, 1>(c, q, now, tile, bias, normal);
        if constexpr (Kind == kind::other)
          if (joins && (end == blocks_ || end % portable::a8_joined == 0))
            for (std::int64_t m = 0; m < c.m1 - c.m; ++m)
              a8_join(tile + m * c.cols() + (q - c.q) * wide, total + m * c.cols() + (q - c.q) * wide, 16 * panels,
                      first >= portable::a8_joined);
      }
    }
    if constexpr (Kind == kind::other)
      epilogue_.finish(c.batch, c.m0 + c.m, c.m0 + c.m1, c.q * wide, smaller(s_.N, c.q1 * wide), joins ? total : tile, c.cols());
  }
  /// The first tile that is read after those of the blocks before `end` of pair q.
  const a8_panel_tile* next_of(std::int64_t q, std::int64_t end) const {
    if (end < blocks_) return weight_.panel(packed_, 2 * q) + end;
    return 2 * q + 3 < weight_.panels() ? weight_.panel(packed_, 2 * q + 2) : nullptr;
  }

  template <kind Kind, int Panels>
  ISOTOPE_NOINLINE void rows_of(const cell& c, std::int64_t q, const step& now, float* tile, const float* bias, bool normal) const {
    const std::int64_t ld = c.cols();
    const bool last = now.end == blocks_;
    [[maybe_unused]] const auto finish_at = [&](std::int64_t m) {
      if constexpr (Kind != kind::other)
        finish<Kind>(tile + (m - c.m) * wide, (c.m0 + m) * s_.N + q * wide, smaller(some, c.m1 - m), q * wide, bias,
                     normal && !small_[m / high]);
    };
    for (std::int64_t m = c.m; m < c.m1; m += some) {
      const std::int64_t group = m / high, count = smaller(some, c.m1 - m), at = (c.m0 + m) * s_.N + q * wide;
      float* const y = tile + (m - c.m) * ld + (q - c.q) * wide;
      if constexpr (Kind != kind::other)
        if (last) fetch<Kind>(at, count);
      if (now.next != nullptr && m % high == 0 && (m == c.m || m + high >= c.m1)) fetch_tiles(now.next, Panels, now.end - now.first);
      a8_dot_rows<Panels>(weight_.panel(packed_, 2 * q) + now.first, blocks_, rows_ + group * blocks_ + now.first, m % high,
                          now.end - now.first, y, ld, now.first % portable::a8_joined > 0);
      if (last && m > c.m) finish_at(m - some);  // not the last sums, for which it would wait
    }
    if (last) finish_at((c.m1 - 1) / some * some);
  }

  void fetch_tiles(const a8_panel_tile* next, int panels, std::int64_t blocks) const {
    for (int v = 0; v < panels; ++v)
      for (const std::byte *at = reinterpret_cast<const std::byte*>(next + v * blocks_), *end = at + blocks * std::int64_t(sizeof *next);
           at < end; at += 64)
        __builtin_prefetch(at, 0, 2);
  }
  /// Fetches the lines that `finish` reads and writes.
  template <kind Kind> ISOTOPE_INLINE void fetch(std::int64_t at, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i) {
      __builtin_prefetch(body_.result + at + i * s_.N, 1, 3);
      if constexpr (Kind == kind::residual) __builtin_prefetch(body_.residual + at + i * s_.N, 0, 3);
    }
  }
  /// Finishes and stores `rows` rows of 32 sums each, of columns from n on; the result begins at element `at`.
  /// @param normal  neither sums nor biases are subnormal
  template <kind Kind>
  ISOTOPE_NOINLINE void finish(const float* sums, std::int64_t at, std::int64_t rows, std::int64_t n, const float* bias,
                               bool normal) const {
    even_and_odd v[some];
#pragma GCC unroll 4
    for (int i = 0; i < some; ++i) v[i] = even_and_odd::sum_of(sums + wide * i, 0, 1);
    if constexpr (config::has_bf16_pairs)
      if (rows == some && normal) return body_.template finish<Kind>(v, bias, at);
    for (std::int64_t i = 0; i < rows; ++i) body_.template finish_exactly<Kind>(v[i], at + i * s_.N, n);
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
