#pragma once
/// The product of bf16 rows with a packed weight on a matrix unit, with its epilogue: rounding, a bias, and GELU or a residual.
///
/// Bound by the unit's loads from L2, or with GELU by the vector instructions. A block of 32 x 32 sums leaves the unit through L1 and is finished while the
/// unit multiplies the next block, two rows at a time between two steps of K. Rows pass L1 by, where a panel, or with K > 384 a piece of it, stays for all rows
/// of a cell; between two pieces the sums wait in L2. Lines of a result lie in a page each and come from L3 or memory, so each block fetches its own before it
/// is finished, and a part of the next panel. Sentences/s of MiniLM in 8 x 64 and 32 x 128, the best of 30 and 8 turns: 441 and 174, with two rows of GELU in
/// step 471 and 184, with rows past L1 488 and 186, in pieces 501 and 200. Fetching the next rows to L1 instead lost 11 %. The bits are those of
/// gemm_by_columns. Weights in blocks are unpacked a panel at a time.
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/lines_ahead.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/rounded_body.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_operands.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Unit> class gemm_by_unit {
  using rows = unit_rows<Unit>;
  static constexpr std::int64_t high = rows::most, wide = blocking::cols, block = high * wide, terms = Unit::terms;
  static constexpr std::int64_t few_rows = 64;                                // with more, results and the next panel are fetched ahead
  static constexpr std::int64_t most_rows = 512, most_row_bytes = 768 << 10;  // of a cell
  static constexpr std::int64_t most_blocks = 4, deepest = most_blocks * 2 * blocking::depth;
  static constexpr std::int64_t piece = 384;     // terms of K of a panel that stay in L1, 24 KB
  static constexpr std::int64_t most_sums = 32;  // blocks whose sums wait in L2
  static_assert(wide == 2 * lanes && Unit::rows == lanes);

 public:
  gemm_by_unit(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue)
      : l_(l),
        s_(s),
        body_(l, s, epilogue),
        weight_(s.K, s.N),
        packed_(in_blocks(l.in[1].type) ? nullptr : l.in[1].as<const float>()),
        depth_(gemm_partition::depth_of(s.K, 2, terms)),
        blocks_(divide_up(s.K, depth_)) {}

  /// Whether the sizes, the weight and the body suit.
  bool takes() const {
    const bool sizes = s_.batches == 1 && s_.K % terms == 0 && s_.K > 0 && s_.K <= deepest && s_.N % wide == 0 && s_.a_k == 1 &&
                       (s_.M <= few_rows || body_.what != body_kind::none);
    const bool normal = packed_ == nullptr || packed_weight::normal(packed_);
    return sizes && normal && unit_operands<Unit>::reads_whole_strips(s_.a_row, s_.a_k, s_.K) && body_.known();
  }
  void run() const {
    const std::int64_t most = larger_of(high, smaller(most_rows, most_row_bytes / (2 * s_.K)) / high * high), panels = s_.N / wide;
    const auto narrower = [](std::int64_t across, std::int64_t down) {
      return across > 4 || (across > 1 && down <= high) ? divide_up(across, 2) : 0;
    };
    const gemm_cells all{panels, s_.M, panels, smaller(most, whole(s_.M, high))};
    const auto cells = all.divided(cells_for(threads_of(l_)), narrower, high, high);
    portable::for_uneven_tasks(l_, cells.count(), product_nsec(1, s_.M, s_.N, s_.K / 2),
                               [&](std::int64_t t, int) { body_.with_kind([&](auto what) { fill<what>(cells.by_rows(t)); }); });
  }

 private:
  /// A panel of the weight, and the least and the largest exponent of its numbers but zero.
  struct operand {
    const float* data = nullptr;
    int least = 0, largest = 0;
  };
  /// What a block fetches for later ones: the lines of its own results, which are written while the next block is multiplied, and a part of the next panel.
  using coming = lines_ahead<1>;
  /// A block whose sums have left the unit: those of each block of K.
  struct made {
    float* sums = nullptr;
    rows left;
    std::int64_t m = 0, count = 0, n = 0, done = 0;  // the first row, rows, the first column, rows that are finished
    operand with;                                    // the panel
    const float* bias = nullptr;                     // of the panel, as in even_and_odd; null if it has subnormal numbers
  };

  template <body_kind Kind> void fill(const gemm_cell& c) const {
    alignas(64) float sums[most_sums * block];
    alignas(64) float room[unit_copy<Unit>::floats(deepest)];
    alignas(64) float unpacked[deepest / 2 * wide + unit_operands<Unit>::head];
    alignas(64) float bias[2][wide];
    const Unit held;
    const auto* x = l_.in[0].as<const bfloat16>() + c.m * s_.a_row;
    const std::int64_t rest = c.rows % high % Unit::rows == 0 ? 0 : c.rows % high;  // rows of a strip that fills no tiles
    const unit_copy<Unit> copy(room, s_.K, true);
    if (rest > 0) copy.fill(x + (c.rows - rest) * s_.a_row, s_.a_row, 1, rest, s_.K);
    const bool fetches = c.rows > few_rows;
    made last;
    const std::int64_t strips = divide_up(c.rows, high), long_piece = even_part(depth_, piece, terms);
    const bool in_pieces = strips > 1 && s_.K > piece && strips * blocks_ <= most_sums;
    for (std::int64_t p = c.p0; p < c.p1; ++p) {
      if (last.count > 0) look<Kind>(last);
      const operand panel = panel_of(p, unpacked);
      const bool normal = body_.template widen_bias<Kind>(p * wide, bias[p % 2]);
      std::int64_t from = 0, to = 0;  // terms of a piece
      for (; from < s_.K; from = to) {
        to = in_pieces ? smaller(from + long_piece, smaller((from / depth_ + 1) * depth_, s_.K)) : s_.K;
        for (std::int64_t i = 0; i < strips; ++i) {
          const std::int64_t m = i * high, count = smaller(high, c.rows - m);
          const rows left = count == rest ? copy.tiles() : rows{x + m * s_.a_row, s_.a_row, Unit::rows * s_.a_row, terms};
          float* const place = sums + (in_pieces ? i : (i + p * strips) % 2) * blocks_ * block;
          if (to == s_.K && i > 0) look<Kind>(last);
          coming ahead;
          if (fetches && to == s_.K) {
            ahead.result = reinterpret_cast<const std::byte*>(body_.result + (c.m + m) * s_.N + p * wide);
            ahead.rows = count;
            ahead.row_bytes = 2 * s_.N;
          }
          if (fetches && p + 1 < c.p1) {
            const std::int64_t lines = panel_bytes() / 64, before = (from * strips + (to - from) * i) * lines / (s_.K * strips),
                               behind = (from * strips + (to - from) * (i + 1)) * lines / (s_.K * strips);
            ahead.panel = l_.in[1].as<const std::byte>() + panel_start(p + 1) + 64 * before;
            ahead.lines = behind - before;
          }
          ahead.divide((to - from) / terms);
          if (count > Unit::rows) multiply<Kind, 2>(left, panel.data, from, to, place, last, ahead);
          else multiply<Kind, 1>(left, panel.data, from, to, place, last, ahead);
          if (to == s_.K) last = {place, left, c.m + m, count, p * wide, 0, panel, normal ? bias[p % 2] : nullptr};
        }
      }
    }
    if (last.count > 0) look<Kind>(last);
    finish_until<Kind>(last, last.count);
  }

  /// Where panel p begins, in bytes, and its size.
  std::int64_t panel_start(std::int64_t p) const { return packed_ != nullptr ? 4 * weight_.at(0, p * wide) : p * panel_bytes(); }
  std::int64_t panel_bytes() const {
    return packed_ != nullptr ? 2 * s_.K * wide
                              : wide / quantized::panel_rows * (s_.K / quantized::block) * quantized::record_bytes(l_.in[1].type);
  }
  /// Panel p, of a weight in blocks unpacked to `room`.
  operand panel_of(std::int64_t p, float* room) const {
    if (packed_ != nullptr) return {packed_ + weight_.at(0, p * wide), packed_weight::least(packed_), packed_weight::largest(packed_)};
    unit_operands<Unit>::unpack(portable::block_weight(l_.in[1]), p * wide, wide, 0, s_.K, wide, room);
    const auto of = unit_operands<Unit>::packed(room, wide, wide);
    return {of.pairs.data, of.least, of.largest};
  }

  /// Multiplies terms [from, to) of a strip with those of a panel and meanwhile finishes the block before.
  template <body_kind Kind, int Halves>
  ISOTOPE_NOINLINE void multiply(const rows& a, const float* right, std::int64_t from, std::int64_t to, float* sums, made& before,
                                 coming ahead) const {
    const bfloat16* left = a.data + from / terms * a.tile_stride;
    right += from / 2 * wide;
    sums += from / depth_ * block;
    const std::int64_t row_bytes = a.row_stride * 2, half = a.half_stride, next = a.tile_stride;
    const std::int64_t steps = (to - from) / terms;
    std::int64_t step = 0;
    for (std::int64_t end = 0; from < to; from = end, sums += block) {
      end = smaller(to, (from / depth_ + 1) * depth_);
      begin_tiles<Unit, Halves, 2>(sums, wide, from % depth_ != 0);
      for (std::int64_t k = from; k < end; k += terms) {
        Unit::template load_once<4>(left, row_bytes);
        Unit::template load<6>(right, 4 * wide);
        Unit::template add_pairs<0, 4, 6>();
        Unit::template load<7>(right + lanes, 4 * wide);
        Unit::template add_pairs<1, 4, 7>();
        if constexpr (Halves == 2) {
          Unit::template load_once<5>(left + half, row_bytes);
          Unit::template add_pairs<2, 5, 6>();
          Unit::template add_pairs<3, 5, 7>();
        }
        left += next;
        right += terms / 2 * wide;
        ahead.fetch();
        finish_until<Kind>(before, before.count * ++step / steps);
      }
      store_tiles<Unit, Halves, 2>(sums, wide);
    }
  }

  /// Computes sums again in f32 where the unit may have lost subnormal numbers, and finishes such blocks exactly.
  template <body_kind Kind> void look(made& b) const {
    if (!doubtful<Kind>(b)) return;
    compute_again(b);
    while (b.done < b.count) finish_exactly<Kind>(b);
  }
  /// Whether a sum is small, zero or unknown. Otherwise the sums of all blocks of K are multiples of 2^-114, and the conversion of normal numbers to bf16 rounds
  /// them, and them with a bias that has no subnormal numbers, as the format says.
  template <body_kind Kind> bool doubtful(const made& b) const {
    if (b.with.largest == 255 || (b.bias == nullptr && Kind != body_kind::none)) return true;
    const float bound = doubtful_below(b.with.largest);
    vector least[4] = {all_of(bound), all_of(bound), all_of(bound), all_of(bound)};
    for (std::int64_t k0 = 0, at = 0; k0 < s_.K; k0 += depth_, at += block)
      for (std::int64_t i = 0; i < b.count * wide; i += 2 * lanes) {
        keep_least(least[i / (2 * lanes) % 2], load_vector(b.sums + at + i));
        keep_least(least[2 + i / (2 * lanes) % 2], load_vector(b.sums + at + i + lanes));
      }
    for (int i = 1; i < 4; ++i) keep_least(least[0], least[i]);
    return any_below(least[0], bound);
  }
  ISOTOPE_NOINLINE void compute_again(made& b) const {
    b.left.find_exponents(b.count, s_.K / terms);
    if (b.with.largest < 255 && stays_normal(b.left.least, b.with.least)) return;
    struct part {
      const rows& all;
      std::int64_t pairs;
      const bfloat16* pair(std::int64_t i, std::int64_t k) const { return all.pair(i, pairs + k); }
    };
    float* to = b.sums;
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_, to += block)
      widened_gemm(part{b.left, k0 / 2}, b.count, panel{b.with.data + k0 / 2 * wide, wide, wide, wide}, place{to, wide, true},
                   smaller(depth_, s_.K - k0) / 2, false);
  }

  static ISOTOPE_INLINE vector all_of(float x) { return x - vector{}; }
  /// The sums of row i.
  ISOTOPE_INLINE even_and_odd sum_of(const made& b, std::int64_t i) const {
    return even_and_odd::sum_of(b.sums + i * wide, block, blocks_);
  }
  /// Finishes the next row, which may have any numbers.
  template <body_kind Kind> ISOTOPE_NOINLINE void finish_exactly(made& b) const {
    const std::int64_t i = b.done++;
    body_.template finish_exactly<Kind>(sum_of(b, i), (b.m + i) * s_.N + b.n, b.n);
  }
  /// Finishes the next rows, whose sums are not doubtful.
  template <body_kind Kind, int Rows> ISOTOPE_INLINE void finish(made& b) const {
    const std::int64_t i = b.done;
    b.done += Rows;
    even_and_odd v[Rows];
    lanewise::in_step<Rows>([&](std::size_t r) ISOTOPE_INLINE_LAMBDA { v[r] = sum_of(b, i + std::int64_t(r)); });
    body_.template finish<Kind>(v, b.bias, (b.m + i) * s_.N + b.n);
  }
  /// Finishes rows before row `due`, two by two.
  template <body_kind Kind> ISOTOPE_INLINE void finish_until(made& b, std::int64_t due) const {
    if constexpr (!config::has_bf16_pairs) {
      while (b.done < due) finish_exactly<Kind>(b);
    } else {
      while (b.done < due && b.done + 2 <= b.count) finish<Kind, 2>(b);
      while (b.done < due) finish<Kind, 1>(b);
    }
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  rounded_body body_;
  packed_weight weight_;
  const float* packed_;
  std::int64_t depth_, blocks_;  // of a block of K; blocks
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
