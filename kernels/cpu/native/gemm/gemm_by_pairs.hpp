#pragma once
/// The product of bf16 rows with a packed weight by pairs, with its epilogue: rounding, a bias, and GELU or a residual.
///
/// Bound by multiply-adds; for few rows by the bytes of the weight, which is read as one run, a later panel fetched while this one is multiplied. A register
/// tile passes through L1 and is finished two rows at a time. Nothing is packed or transposed in a step. The bits are those of gemm_by_columns.
#include <isotope/kernels/cpu/native/gemm/operands.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_body.hpp>
#include <isotope/kernels/cpu/native/gemm/weight_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// @tparam Operands  pair_operands; a template, so that builds without instructions for pairs do not compile it
template <class Operands> class gemm_by_pairs {
  static constexpr std::int64_t high = blocking::rows, wide = blocking::cols, tile = high * wide;
  static constexpr std::int64_t most_rows = 512, most_row_bytes = 512 << 10;  // of a cell
  static constexpr std::int64_t most_blocks = 4;                              // of K

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
      else if (down > high) down = whole(divide_up(down, 2), high);
      else break;
    }
    down = even_part(s_.M, down, high);
    across = even_part(panels, across, 1);
    const std::int64_t low = divide_up(s_.M, down), columns = divide_up(panels, across);
    const double nsec = double(s_.M) * double(larger_of(s_.K / 2, 8)) * (0.1 + double(s_.N) / 60.0);
    portable::for_uneven_tasks(l_, low * columns, nsec, [&](std::int64_t t, int) {
      const cell c{t / columns * down, smaller(s_.M, (t / columns + 1) * down), t % columns * across,
                   smaller(panels, (t % columns + 1) * across)};
      switch (body_.what) {
        case unit_body::kind::none: return fill<unit_body::kind::none>(c);
        case unit_body::kind::bias: return fill<unit_body::kind::bias>(c);
        case unit_body::kind::gelu: return fill<unit_body::kind::gelu>(c);
        default: return fill<unit_body::kind::residual>(c);
      }
    });
  }

 private:
  struct cell {
    std::int64_t m0, m1, p0, p1;  // rows, panels
  };

  /// The rows of the next tile.
  static constexpr std::int64_t rows_of(std::int64_t left) {
    return left >= high && left != 16 ? high : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
  static constexpr std::int64_t tiles_of(std::int64_t rows) {
    std::int64_t n = 0;
    for (; rows > 0; rows -= rows_of(rows)) ++n;
    return n;
  }

  template <unit_body::kind Kind> void fill(const cell& c) const {
    alignas(64) float sums[most_blocks * tile];  // of a tile, for each block of K
    alignas(64) float bias[wide];
    const auto* x = l_.in[0].as<const bfloat16>();
    const std::int64_t lines = divide_up(2 * rows_ahead::line, tiles_of(c.m1 - c.m0));
    const float bound = doubtful_below(packed_weight::largest(packed_));
    for (std::int64_t p = c.p0; p < c.p1; ++p) {
      const float* const w = packed_ + weight_.at(0, p * wide);
      bool whole_bias = true;
      if constexpr (Kind != unit_body::kind::none) {
        const even_and_odd wide_bias = even_and_odd::of(body_.bias + p * wide);
        store(bias, wide_bias.even, wide_bias.odd);
        whole_bias = !wide_bias.has_subnormals();
      }
      const float* next = packed_ + weight_.at(0, (p + 1) * wide);
      for (std::int64_t m = c.m0, rows = 0; m < c.m1; m += rows) {
        rows = rows_of(c.m1 - m);
        const pair_rows left{x + m * s_.a_row, s_.a_row, 2};
        const bool sure = multiply(left, rows, w, bound, sums, panel_ahead{next, lines}) && whole_bias;
        next += lines * (s_.K / 2);
        if (!sure) finish_exactly<Kind>(left, m, rows, p, sums);
        else finish<Kind>(m, rows, p, sums, bias);
      }
    }
  }

  /// Makes the sums of a tile; returns whether none may have lost a subnormal number.
  bool multiply(const pair_rows& a, std::int64_t rows, const float* w, float bound, float* sums, panel_ahead ahead) const {
    using make = bool (*)(const pair_rows&, const panel&, const place&, std::int64_t, bool, float, panel_ahead);
    constexpr int tall = int(high);
    static constexpr make tiles[] = {&pair_microkernel<1, 2, panel_ahead>, &pair_microkernel<2, 2, panel_ahead>,
                                     &pair_microkernel<4, 2, panel_ahead>, &pair_microkernel<8, 2, panel_ahead>,
                                     &pair_microkernel<tall, 2, panel_ahead>};
    const make of = tiles[rows == high ? 4 : rows == 8 ? 3 : rows == 4 ? 2 : rows - 1];
    bool sure = true;
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_, sums += tile) {
      const std::int64_t steps = smaller(depth_, s_.K - k0) / 2;
      sure =
          of({a.data + k0, a.row_stride, 2}, {w + k0 / 2 * wide, wide, wide, wide}, {sums, wide, true}, steps, false, bound, ahead) && sure;
      ahead.at += ahead.lines * steps;
    }
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
  /// Finishes a tile whose sums are not doubtful.
  template <unit_body::kind Kind>
  ISOTOPE_NOINLINE void finish(std::int64_t m, std::int64_t rows, std::int64_t p, const float* sums, const float* bias) const {
    const std::int64_t at = m * s_.N + p * wide;
    bfloat16* const to = l_.out[0].as<bfloat16>() + at;
    const bfloat16* const residual = Kind == unit_body::kind::residual ? body_.residual + at : nullptr;
    std::int64_t r = 0;
    const auto some = [&]<std::size_t Rows>(std::integral_constant<std::size_t, Rows>) ISOTOPE_INLINE_LAMBDA {
      even_and_odd v[Rows];
      lanewise::in_step<Rows>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { v[i] = sum_of(sums + (r + std::int64_t(i)) * wide); });
      unit_body::finish<Kind>(v, bias, residual == nullptr ? nullptr : residual + r * s_.N, to + r * s_.N, s_.N);
      r += std::int64_t(Rows);
    };
    while (r + 2 <= rows) some(std::integral_constant<std::size_t, 2>{});
    if (r < rows) some(std::integral_constant<std::size_t, 1>{});
  }
  /// Computes the sums of a tile again where some may have lost subnormal numbers, and finishes any numbers.
  template <unit_body::kind Kind>
  ISOTOPE_NOINLINE void finish_exactly(pair_rows a, std::int64_t m, std::int64_t rows, std::int64_t p, float* sums) const {
    const float* const w = packed_ + weight_.at(0, p * wide);
    a.find_exponents(rows, s_.K / 2);
    if (stays_normal(a.least, packed_weight::least(packed_))) {
      multiply(a, rows, w, 0.0f, sums, {w, 0});
    } else {
      for (std::int64_t k0 = 0, at = 0; k0 < s_.K; k0 += depth_, at += tile)
        widened_gemm(pair_rows{a.data + k0, a.row_stride, 2}, rows, panel{w + k0 / 2 * wide, wide, wide, wide},
                     place{sums + at, wide, true}, smaller(depth_, s_.K - k0) / 2, false);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = (m + r) * s_.N + p * wide;
      const even_and_odd v = sum_of(sums + r * wide);
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
