#pragma once
/// The product of bf16 rows with a packed weight by pairs, with its epilogue: rounding, a bias, and GELU or a residual.
///
/// Bound by multiply-adds; for few rows by the bytes of the weight, which is read as one run. Nothing is packed or transposed in a step. The sums of a register tile
/// pass through L1, and while the next tile is multiplied, each 16 steps one of its rows is finished: the window of the processor then holds both, and adds,
/// shifts and masks have units of their own beside those for multiply-adds. The same pause fetches lines of the next rows, of the tile's results, which come from
/// L3 or memory, and of the next panel. The layers of MiniLM, 512 rows, on one thread of an EPYC (Zen 4) that has 234 GFLOP/s: 209 with each tile finished after it
/// was multiplied, 213 with the next rows and results fetched, 218 with rows finished meanwhile; of these the product with GELU 206. Groups of 8
/// panels within each strip of rows lost 1 %. The bits are those of gemm_by_columns.
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_body.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Operands  pair_operands; a template, so that builds without instructions for pairs do not compile it
template <class Operands> class gemm_by_pairs {
  static constexpr std::int64_t high = blocking::rows, wide = blocking::cols, tile = high * wide;
  static constexpr std::int64_t unit = 4;  // of the rows of a cell, so that cells are even
  // Of a cell, whose rows and results stay in L2; 96 to 264 rows are as fast on one thread, with 512 two threads lose 5 %.
  static constexpr std::int64_t most_rows = 144, most_row_bytes = 512 << 10;
  static constexpr std::int64_t most_blocks = 4;  // of K

 public:
  gemm_by_pairs(const launch& l, const portable::matmul_shape& s)
      : l_(l),
        s_(s),
        body_(l, s.N),
        weight_(s.K, s.N),
        packed_(l.in[1].as<const float>()),
        depth_(gemm_partition::depth_of(s.K, Operands::per_step, Operands::k_unit)) {}

  /// Whether the sizes, the weight and the body suit.
  bool takes(const portable::gemm_epilogue& epilogue) const {
    const bool sizes = s_.batches == 1 && s_.K > 0 && s_.K <= most_blocks * depth_ && s_.N % wide == 0;
    const bool finished = l_.out.size() == 1 && l_.accumulate == 0 && (epilogue.rounded() || epilogue.finishes_rounded());
    const bool normal = packed_weight::least(packed_) > 0 && packed_weight::largest(packed_) < 255;
    return sizes && finished && normal && !Operands::copied(l_.in[0], s_.a_row, s_.a_k, s_.M, s_.K) && body_.what != unit_body::kind::other;
  }
  void run() const {
    const std::int64_t threads = l_.pool == nullptr ? 1 : l_.pool->size(), wanted = threads == 1 ? 1 : 4 * threads, panels = s_.N / wide;
    std::int64_t down = smaller(larger_of(high, smaller(most_rows, most_row_bytes / (2 * s_.K))), s_.M), across = panels;
    while (divide_up(s_.M, down) * divide_up(panels, across) < wanted) {
      if (across > 4 || (across > 1 && down <= 2 * high)) across = divide_up(across, 2);
      else if (down > high) down = whole(divide_up(down, 2), unit);
      else break;
    }
    if (down < s_.M) down = even_part(s_.M, down, unit);
    across = even_part(panels, across, 1);
    const std::int64_t low = divide_up(s_.M, down), columns = divide_up(panels, across);
    const double nsec = double(s_.M) * double(larger_of(s_.K / 2, 8)) * (0.1 + double(s_.N) / 60.0);
    portable::for_uneven_tasks(l_, low * columns, nsec, [&](std::int64_t t, int) {
      const cell c{t / columns * down, smaller(s_.M, (t / columns + 1) * down), t % columns * across,
                   smaller(panels, (t % columns + 1) * across)};
      switch (body_.what) {
        case unit_body::kind::none: return fill<unit_body::kind::none>(c);
        case unit_body::kind::bias: return fill<unit_body::kind::bias>(c);
        case unit_body::kind::gelu_erf: return fill<unit_body::kind::gelu_erf>(c);
        default: return fill<unit_body::kind::residual>(c);
      }
    });
  }

 private:
  struct cell {
    std::int64_t m0, m1, p0, p1;  // rows, panels
  };
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
  template <unit_body::kind Kind> struct step {
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
        if constexpr (Kind == unit_body::kind::residual) {
          __builtin_prefetch(m.residual, 0, 3);
          m.residual += m.of.s_.N;
        }
      }
      if constexpr (Kind != unit_body::kind::other)
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

  template <unit_body::kind Kind> void fill(const cell& c) const {
    alignas(64) float sums[2 * most_blocks * tile];  // of two tiles
    alignas(64) float bias[2][wide];
    const auto* x = l_.in[0].as<const bfloat16>();
    const float bound = doubtful_below(packed_weight::largest(packed_));
    meanwhile other{*this};
    other.lines = divide_up(2 * rows_ahead::line, tiles_of(c.m1 - c.m0));
    std::int64_t tiles = 0;
    for (std::int64_t p = c.p0; p < c.p1; ++p) {
      bool normal = true;
      if constexpr (Kind != unit_body::kind::none) {
        const even_and_odd b = even_and_odd::of(body_.bias + p * wide);
        store(bias[p % 2], b.even, b.odd);
        normal = !b.has_subnormals();
      }
      other.panel = packed_ + weight_.at(0, (p + 1) * wide);
      for (std::int64_t m = c.m0, rows = 0; m < c.m1; m += rows, ++tiles) {
        rows = rows_of(c.m1 - m);
        const std::int64_t at = m * s_.N + p * wide;
        const pair_rows left{x + m * s_.a_row, s_.a_row, 2};
        float* const to = sums + tiles % 2 * most_blocks * tile;
        other.rows = x + (m + rows < c.m1 ? m + rows : c.m0) * s_.a_row;
        other.result = l_.out[0].as<const bfloat16>() + at;
        if constexpr (Kind == unit_body::kind::residual) other.residual = body_.residual + at;
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
  template <unit_body::kind Kind>
  bool multiply(const pair_rows& a, std::int64_t rows, std::int64_t p, float bound, float* sums, meanwhile& other) const {
    const float* const w = packed_ + weight_.at(0, p * wide);
    bool sure = true;
    const auto run = [&]<int Rows, unit_body::kind Does>(std::integral_constant<int, Rows>, step<Does> s) {
      for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_, sums += tile) {
        const place to{sums, wide, true};
        const panel b{w + k0 / 2 * wide, wide, wide, wide};
        sure = pair_microkernel<Rows, 2>({a.data + k0, a.row_stride, 2}, b, to, smaller(depth_, s_.K - k0) / 2, false, bound, s) && sure;
      }
    };
    if (rows == high) run(std::integral_constant<int, int(high)>{}, step<Kind>{&other});
    else if (rows == 8) run(std::integral_constant<int, 8>{}, step<Kind>{&other});
    else if (rows == 4) run(std::integral_constant<int, 4>{}, step<unit_body::kind::other>{&other});
    else if (rows == 2) run(std::integral_constant<int, 2>{}, step<unit_body::kind::other>{&other});
    else run(std::integral_constant<int, 1>{}, step<unit_body::kind::other>{&other});
    return sure;
  }
  /// The sums of a row, in the order of memory: the first and the second vector.
  ISOTOPE_INLINE even_and_odd sum_of(const float* from) const {
    vector y = load_vector(from), z = load_vector(from + lanes);
    for (std::int64_t k0 = depth_; k0 < s_.K; k0 += depth_) {
      from += tile;
      y += load_vector(from);
      z += load_vector(from + lanes);
    }
    return {y, z};
  }
  /// Finishes the next rows, whose sums are not doubtful.
  template <unit_body::kind Kind, std::size_t Rows> ISOTOPE_INLINE void finish_rows(made& b) const {
    const std::int64_t i = b.done, at = b.at + i * s_.N;
    b.done += std::int64_t(Rows);
    even_and_odd v[Rows];
    lanewise::in_step<Rows>([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { v[r] = sum_of(b.sums + (i + std::int64_t(r)) * wide); });
    unit_body::finish<Kind>(v, b.bias, Kind == unit_body::kind::residual ? body_.residual + at : nullptr, l_.out[0].as<bfloat16>() + at,
                            s_.N);
  }
  template <unit_body::kind Kind> ISOTOPE_NOINLINE void finish(made& b) const {
    while (b.done + 2 <= b.rows) finish_rows<Kind, 2>(b);
    if (b.done < b.rows) finish_rows<Kind, 1>(b);
  }
  /// Computes the sums of a tile of panel p again where some may have lost subnormal numbers, and finishes any numbers.
  template <unit_body::kind Kind> ISOTOPE_NOINLINE void finish_exactly(pair_rows a, std::int64_t p, float* sums, made& b) const {
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
    for (; b.done < b.rows; ++b.done) {
      const std::int64_t at = b.at + b.done * s_.N;
      const even_and_odd v = sum_of(sums + b.done * wide);
      bfloat16* const to = l_.out[0].as<bfloat16>() + at;
      const bfloat16 *bias = to, *residual = to;  // not read
      if constexpr (Kind != unit_body::kind::none) bias = body_.bias + p * wide;
      if constexpr (Kind == unit_body::kind::residual) residual = body_.residual + at;
      store(to, unit_body::finished<Kind>(v.even, bias, residual), unit_body::finished<Kind>(v.odd, bias + lanes, residual + lanes));
    }
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  unit_body body_;
  packed_weight weight_;
  const float* packed_;
  std::int64_t depth_;  // of a block of K
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
