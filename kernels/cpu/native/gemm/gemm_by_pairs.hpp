#pragma once
/// The product of bf16 rows with a packed weight by pairs, with its epilogue: rounding, a bias, and GELU or a residual.
///
/// Bound by multiply-adds; for few rows by the bytes of the weight, which is read as one run. Nothing is packed or transposed in a step. The sums of a register tile
/// pass through L1, and while the next tile is multiplied, each 16 steps one of its rows is finished: the window of the processor then holds both, and adds,
/// shifts and masks have units of their own beside those for multiply-adds. The same pause fetches lines of the next rows, of the tile's results, which come from
/// L3 or memory, and of the next panel. The layers of MiniLM, 512 rows, on one thread of an EPYC (Zen 4) that has 234 GFLOP/s: 209 with each tile finished after it
/// was multiplied, 213 with the next rows and results fetched, 218 with rows finished meanwhile; of these the product with GELU 206. Groups of 8
/// panels within each strip of rows lost 1 %. The bits are those of gemm_by_columns.
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/rounded_body.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Operands  pair_operands; a template, so that builds without instructions for pairs do not compile it
template <class Operands> class gemm_by_pairs {
  static constexpr std::int64_t high = blocking::rows, wide = blocking::cols, tile = high * wide;
  static constexpr std::int64_t unit = 4;  // of the rows of a cell, so that cells are even
  // Of a cell, whose rows and results stay in L2; 96 to 264 rows are as fast on one thread, with 512 two threads lose 5 %.
  static constexpr std::int64_t most_rows = 144, most_row_bytes = 512 << 10;
  static constexpr std::int64_t most_blocks = 4;  // of K

 public:
  gemm_by_pairs(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue)
      : l_(l),
        s_(s),
        body_(l, s, epilogue),
        weight_(s.K, s.N),
        packed_(l.in[1].as<const float>()),
        depth_(gemm_partition::depth_of(s.K, Operands::per_step, Operands::k_unit)),
        blocks_(divide_up(s.K, depth_)) {}

  /// Whether the sizes, the weight and the body suit.
  bool takes() const {
    const bool sizes = s_.batches == 1 && s_.K > 0 && blocks_ <= most_blocks && s_.N % wide == 0;
    return sizes && packed_weight::normal(packed_) && !Operands::copied(l_.in[0], s_.a_row, s_.a_k, s_.M, s_.K) && body_.known();
  }
  void run() const {
    const std::int64_t most = smaller(larger_of(high, smaller(most_rows, most_row_bytes / (2 * s_.K) / unit * unit)), whole(s_.M, unit));
    const auto narrower = [](std::int64_t across, std::int64_t down) {
      return across > 4 || (across > 1 && down <= 2 * high) ? divide_up(across, 2) : 0;
    };
    const std::int64_t panels = s_.N / wide;
    const auto cells = gemm_cells{panels, s_.M, panels, most}.divided(cells_for(threads_of(l_)), narrower, unit, high).even(unit);
    portable::for_uneven_tasks(l_, cells.count(), product_nsec(1, s_.M, s_.N, s_.K / 2),
                               [&](std::int64_t t, int) { body_.with_kind([&](auto what) { fill<what>(cells.by_rows(t)); }); });
  }

 private:
  /// A tile whose sums are made.
  struct made {
    const float *sums = nullptr, *bias = nullptr;  // of each block of K; of the panel, as in even_and_odd
    std::int64_t at = 0, rows = 0, done = 0;       // place of the first result, rows, rows that are finished
  };
  /// What happens while a tile is multiplied, every 16 steps: a row of the tile before is finished, and lines are fetched of the next rows, of the tile's own
  /// results and residual, and of the next panel.
  struct meanwhile {
    const gemm_by_pairs& of;
    made before{};
    const float* panel = nullptr;
    std::int64_t lines = 0;
    const bfloat16 *rows = nullptr, *result = nullptr, *residual = nullptr;
    std::int64_t results = 0;
  };
  template <body_kind Kind> struct step {
    meanwhile* all;

    template <int Rows> ISOTOPE_INLINE void fetch(std::int64_t row_stride) const {
      constexpr std::int64_t line = rows_ahead::line;
      meanwhile& m = *all;
      for (std::int64_t i = 0; i < m.lines; ++i) __builtin_prefetch(m.panel + i * line, 0, 2);
      m.panel += m.lines * line;
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) __builtin_prefetch(m.rows + i * row_stride, 0, 3);
      m.rows += 2 * line;
      if (m.results > 0) {
        --m.results;
        __builtin_prefetch(m.result, 1, 3);
        m.result += m.of.s_.N;
        if constexpr (Kind == body_kind::residual) {
          __builtin_prefetch(m.residual, 0, 3);
          m.residual += m.of.s_.N;
        }
      }
      if constexpr (Kind != body_kind::other)
        if (m.before.done < m.before.rows) m.of.template finish_rows<Kind, 1>(m.before);
    }
  };

  /// The rows of the next tile. 16 are 8 and 8, since tiles of 4 finish no rows meanwhile.
  static constexpr std::int64_t rows_of(std::int64_t left) {
    return left >= high && left != 16 ? high : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
  static constexpr std::int64_t tiles_of(std::int64_t rows) {
    std::int64_t n = 0;
    for (; rows > 0; rows -= rows_of(rows)) ++n;
    return n;
  }

  template <body_kind Kind> void fill(const gemm_cell& c) const {
    alignas(64) float sums[2 * most_blocks * tile];  // of two tiles
    alignas(64) float bias[2][wide];
    const auto* x = l_.in[0].as<const bfloat16>() + c.m * s_.a_row;
    const float bound = doubtful_below(packed_weight::largest(packed_));
    meanwhile other{*this};
    other.lines = divide_up(2 * rows_ahead::line, tiles_of(c.rows));
    std::int64_t tiles = 0;
    for (std::int64_t p = c.p0; p < c.p1; ++p) {
      const bool normal = body_.template widen_bias<Kind>(p * wide, bias[p % 2]);
      other.panel = packed_ + weight_.at(0, (p + 1) * wide);
      for (std::int64_t m = 0, rows = 0; m < c.rows; m += rows, ++tiles) {
        rows = rows_of(c.rows - m);
        const std::int64_t at = (c.m + m) * s_.N + p * wide;
        const pair_rows left{x + m * s_.a_row, s_.a_row, 2};
        float* const to = sums + tiles % 2 * most_blocks * tile;
        other.rows = x + (m + rows < c.rows ? m + rows : 0) * s_.a_row;
        other.result = body_.result + at;
        if constexpr (Kind == body_kind::residual) other.residual = body_.residual + at;
        other.results = rows;
        const bool sure = multiply<Kind>(left, rows, p, bound, to, other) && normal;
        finish<Kind>(other.before);
        other.before = {to, bias[p % 2], at, rows, 0};
        if (!sure) finish_exactly<Kind>(left, p, to, other.before);
      }
    }
    finish<Kind>(other.before);
  }

  /// Makes the sums of a tile; returns whether none may have lost a subnormal number.
  template <body_kind Kind>
  bool multiply(const pair_rows& a, std::int64_t rows, std::int64_t p, float bound, float* sums, meanwhile& other) const {
    const float* const w = packed_ + weight_.at(0, p * wide);
    bool sure = true;
    const auto run = [&]<int Rows, body_kind Does>(std::integral_constant<int, Rows>, step<Does> s) {
      for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_, sums += tile) {
        const place to{sums, wide, true};
        const panel b{w + k0 / 2 * wide, wide, wide, wide};
        sure = pair_microkernel<Rows, 2>({a.data + k0, a.row_stride, 2}, b, to, smaller(depth_, s_.K - k0) / 2, false, bound, s) && sure;
      }
    };
    if (rows == high) run(std::integral_constant<int, int(high)>{}, step<Kind>{&other});
    else if (rows == 8) run(std::integral_constant<int, 8>{}, step<Kind>{&other});
    else if (rows == 4) run(std::integral_constant<int, 4>{}, step<body_kind::other>{&other});
    else if (rows == 2) run(std::integral_constant<int, 2>{}, step<body_kind::other>{&other});
    else run(std::integral_constant<int, 1>{}, step<body_kind::other>{&other});
    return sure;
  }
  /// The sums of row i.
  ISOTOPE_INLINE even_and_odd sum_of(const made& b, std::int64_t i) const { return even_and_odd::sum_of(b.sums + i * wide, tile, blocks_); }
  /// Finishes the next rows, whose sums are not doubtful.
  template <body_kind Kind, std::size_t Rows> ISOTOPE_INLINE void finish_rows(made& b) const {
    const std::int64_t i = b.done;
    b.done += std::int64_t(Rows);
    even_and_odd v[Rows];
    lanewise::in_step<Rows>([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { v[r] = sum_of(b, i + std::int64_t(r)); });
    body_.template finish<Kind>(v, b.bias, b.at + i * s_.N);
  }
  template <body_kind Kind> ISOTOPE_NOINLINE void finish(made& b) const {
    while (b.done + 2 <= b.rows) finish_rows<Kind, 2>(b);
    if (b.done < b.rows) finish_rows<Kind, 1>(b);
  }
  /// Computes the sums of a tile of panel p again where some may have lost subnormal numbers, and finishes any numbers.
  template <body_kind Kind> ISOTOPE_NOINLINE void finish_exactly(pair_rows a, std::int64_t p, float* sums, made& b) const {
    a.find_exponents(b.rows, s_.K / 2);
    if (stays_normal(a.least, packed_weight::least(packed_))) {
      meanwhile other{*this};
      other.panel = packed_, other.rows = a.data;
      multiply<Kind>(a, b.rows, p, 0.0f, sums, other);
    } else {
      for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_)
        widened_gemm(pair_rows{a.data + k0, a.row_stride, 2}, b.rows, panel{packed_ + weight_.at(k0, p * wide), wide, wide, wide},
                     place{sums + k0 / depth_ * tile, wide, true}, smaller(depth_, s_.K - k0) / 2, false);
    }
    for (; b.done < b.rows; ++b.done) body_.template finish_exactly<Kind>(sum_of(b, b.done), b.at + b.done * s_.N, p * wide);
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  rounded_body body_;
  packed_weight weight_;
  const float* packed_;
  std::int64_t depth_, blocks_;  // of a block of K; blocks
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
