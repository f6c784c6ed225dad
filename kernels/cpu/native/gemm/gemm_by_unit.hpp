#pragma once
/// The product of bf16 rows with a packed weight on a matrix unit, with its epilogue: rounding, a bias, and GELU or a residual.
///
/// Bound by the unit, or with GELU by the vector instructions. A block of 32 x 32 sums leaves the unit through L1 and is finished while the unit multiplies
/// the next block, a few rows between two steps of K, so that both fit into the window of instructions that a processor reorders. A block of 384 terms of K
/// takes 1,190 to 1,450 clocks on the unit, and 2,000 with rounding and storing one after the other. Lines of a result lie in a page each and come from L3 or
/// memory, so each block fetches its own before it is finished, and a part of the next panel: without both, 512 rows of MiniLM are slower than by
/// gemm_by_columns, whose bits these are (376 and 397 sentences/s; with results fetched 403, with both 425). Weights in blocks are unpacked a panel at a time.
#include <isotope/kernels/cpu/native/add.hpp>
#include <isotope/kernels/cpu/native/gelu.hpp>
#include <isotope/kernels/cpu/native/gemm/unit_operands.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The fused bodies that are finished in registers: nothing, y + bias, gelu(y + bias), and y + bias + residual, each step rounded to bf16.
struct unit_body {
  enum class kind { none, bias, gelu, residual, other };
  kind what = kind::other;
  const bfloat16 *bias = nullptr, *residual = nullptr;

  /// A template, since builds without native kernels of bf16 contain none of these.
  template <class Bf16 = precision::bf16> unit_body(const launch& l, std::int64_t N) {
    const auto is = [](const instruction& i, tile_function of) { return i.tile == of && i.type == dtype::bf16; };
    const auto& b = l.body;
    if (b.empty()) what = kind::none;
    if (b.empty() || b.size() > 2 || !is(b[0], &kernel<op::add, Bf16, kernels::native>::tile)) return;
    const view* row = other_operand(l, b[0], isotope::gemm_result);
    if (row == nullptr || row->type != dtype::bf16 || !is_row(*row, N)) return;
    bias = row->as<const bfloat16>();
    if (b.size() == 1) {
      if (b[0].store == 0) what = kind::bias;
    } else if (b[0].store < 0 && b[1].store == 0) {
      if (is(b[1], &kernel<op::gelu_erf, Bf16, kernels::native>::tile) && b[1].arg[0] == max_inputs) what = kind::gelu;
      if (!is(b[1], &kernel<op::add, Bf16, kernels::native>::tile)) return;
      const view* x = other_operand(l, b[1], max_inputs);
      if (x == nullptr || x->type != dtype::bf16 || x->dims != l.out[0].dims || x->strides != dense_strides(x->dims)) return;
      residual = x->as<const bfloat16>();
      what = kind::residual;
    }
  }

 private:
  /// Returns the operand that is added to value `one`; null if there is none.
  static const view* other_operand(const launch& l, const instruction& i, int one) {
    const int other = i.arg[0] == one ? i.arg[1] : i.arg[1] == one ? i.arg[0] : -1;
    return other >= 0 && other < max_inputs ? &l.in[std::size_t(other)] : nullptr;
  }
  static bool is_row(const view& x, std::int64_t N) {
    const auto last = std::size_t(x.dims.rank - 1);
    if (x.dims.rank < 1 || x.dims[-1] != N || x.strides[last] != 1) return false;
    for (std::size_t i = 0; i < last; ++i)
      if (x.dims.d[i] != 1 && x.strides[i] != 0) return false;
    return true;
  }
};

template <class Unit> class gemm_by_unit {
  using rows = unit_rows<Unit>;
  static constexpr std::int64_t high = rows::most, wide = blocking::cols, block = high * wide, terms = Unit::terms;
  static constexpr std::int64_t few_rows = 64;                                // with more, results and the next panel are fetched ahead
  static constexpr std::int64_t most_rows = 512, most_row_bytes = 768 << 10;  // of a cell
  static constexpr std::int64_t most_blocks = 4, deepest = most_blocks * 2 * blocking::depth;
  static_assert(wide == 2 * lanes && Unit::rows == lanes);

 public:
  gemm_by_unit(const launch& l, const portable::matmul_shape& s)
      : l_(l),
        s_(s),
        body_(l, s.N),
        weight_(s.K, s.N),
        packed_(in_blocks(l.in[1].type) ? nullptr : l.in[1].as<const float>()),
        depth_(gemm_partition::depth_of(s.K, 2, terms)) {}

  /// Whether the sizes, the weight and the body suit.
  bool takes(const portable::gemm_epilogue& epilogue) const {
    const bool sizes = s_.batches == 1 && s_.K % terms == 0 && s_.K > 0 && s_.K <= deepest && s_.N % wide == 0 && s_.a_k == 1 &&
                       (s_.M <= few_rows || body_.what != unit_body::kind::none);
    const bool finished = l_.out.size() == 1 && l_.accumulate == 0 && (epilogue.rounded() || epilogue.finishes_rounded());
    const bool normal = packed_ == nullptr || (packed_weight::least(packed_) > 0 && packed_weight::largest(packed_) < 255);
    return sizes && finished && normal && unit_operands<Unit>::reads_whole_strips(s_.a_row, s_.a_k, s_.K) &&
           body_.what != unit_body::kind::other;
  }
  void run() const {
    const std::int64_t threads = l_.pool == nullptr ? 1 : l_.pool->size(), wanted = threads == 1 ? 1 : 4 * threads, panels = s_.N / wide;
    std::int64_t down = smaller(cell_rows(), s_.M), across = panels;
    while (divide_up(s_.M, down) * divide_up(panels, across) < wanted) {
      if (across > 4 || (across > 1 && down <= high)) across = divide_up(across, 2);
      else if (down > high) down = whole(divide_up(down, 2), high);
      else break;
    }
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
  /// Rows of a cell, which stay in L2 for all panels.
  std::int64_t cell_rows() const { return larger_of(high, smaller(most_rows, most_row_bytes / (2 * s_.K)) / high * high); }
  struct cell {
    std::int64_t m0, m1, p0, p1;
  };
  /// A panel of the weight, and the least and the largest exponent of its numbers but zero.
  struct operand {
    const float* data = nullptr;
    int least = 0, largest = 0;
  };
  /// What a block fetches for later ones: the lines of its own results, which are written while the next block is multiplied, and a part of the next panel.
  struct coming {
    const bfloat16* results = nullptr;
    std::int64_t rows = 0;
    const std::byte* panel = nullptr;
    std::int64_t lines = 0;
  };
  /// A block whose sums have left the unit: those of each block of K.
  struct made {
    float* sums = nullptr;
    rows left;
    std::int64_t m = 0, count = 0, n = 0, done = 0;  // the first row, rows, the first column, rows that are finished
    operand with;                                    // the panel
  };

  template <unit_body::kind Kind> void fill(const cell& c) const {
    alignas(64) float sums[2][most_blocks * block];
    alignas(64) float room[unit_copy<Unit>::floats(deepest)];
    alignas(64) float unpacked[deepest / 2 * wide + unit_operands<Unit>::head];
    const Unit held;
    const auto* x = l_.in[0].as<const bfloat16>();
    const std::int64_t rest = (c.m1 - c.m0) % high % Unit::rows == 0 ? 0 : (c.m1 - c.m0) % high;  // rows of a strip that fills no tiles
    const unit_copy<Unit> copy(room, s_.K, true);
    if (rest > 0) copy.fill(x + (c.m1 - rest) * s_.a_row, s_.a_row, 1, rest, s_.K);
    const bool fetches = c.m1 - c.m0 > few_rows;
    made last;
    operand panel;
    int turn = 0;
    for (std::int64_t p = c.p0; p < c.p1; ++p) {
      if (last.count > 0) look(last);
      panel = panel_of(p, unpacked);
      for (std::int64_t m = c.m0; m < c.m1; m += high, turn ^= 1) {
        const std::int64_t count = smaller(high, c.m1 - m);
        const rows left = count == rest ? copy.tiles() : rows{x + m * s_.a_row, s_.a_row, Unit::rows * s_.a_row, terms};
        if (m > c.m0) look(last);
        coming ahead;
        if (fetches) ahead.results = l_.out[0].as<const bfloat16>() + m * s_.N + p * wide, ahead.rows = count;
        if (fetches && p + 1 < c.p1) {
          const std::int64_t lines = panel_bytes() / 64, strips = divide_up(c.m1 - c.m0, high), i = (m - c.m0) / high;
          ahead.panel = l_.in[1].as<const std::byte>() + panel_start(p + 1) + 64 * (lines * i / strips);
          ahead.lines = lines * (i + 1) / strips - lines * i / strips;
        }
        if (count > Unit::rows) multiply<Kind, 2>(left, panel.data, sums[turn], last, ahead);
        else multiply<Kind, 1>(left, panel.data, sums[turn], last, ahead);
        last = {sums[turn], left, m, count, p * wide, 0, panel};
      }
    }
    if (last.count > 0) look(last);
    while (last.done < last.count) finish_row<Kind>(last);
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

  /// Multiplies a strip with a panel and meanwhile finishes the block before.
  template <unit_body::kind Kind, int Halves>
  ISOTOPE_NOINLINE void multiply(const rows& a, const float* right, float* sums, made& before, coming ahead) const {
    const bfloat16* left = a.data;
    const std::int64_t row_bytes = a.row_stride * 2, half = a.half_stride, next = a.tile_stride;
    const std::int64_t each = divide_up(before.count, s_.K / terms), each_line = divide_up(ahead.lines, s_.K / terms),
                       each_result = divide_up(ahead.rows, s_.K / terms);
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth_, sums += block) {
      Unit::template zero<0>();
      Unit::template zero<1>();
      if constexpr (Halves == 2) Unit::template zero<2>();
      if constexpr (Halves == 2) Unit::template zero<3>();
      for (std::int64_t k = smaller(depth_, s_.K - k0); k > 0; k -= terms) {
        Unit::template load<4>(left, row_bytes);
        Unit::template load<6>(right, 4 * wide);
        Unit::template add_pairs<0, 4, 6>();
        Unit::template load<7>(right + lanes, 4 * wide);
        Unit::template add_pairs<1, 4, 7>();
        if constexpr (Halves == 2) {
          Unit::template load<5>(left + half, row_bytes);
          Unit::template add_pairs<2, 5, 6>();
          Unit::template add_pairs<3, 5, 7>();
        }
        left += next;
        right += terms / 2 * wide;
        for (std::int64_t i = 0; i < each_result && ahead.rows > 0; ++i, --ahead.rows, ahead.results += s_.N)
          __builtin_prefetch(ahead.results, 1, 3);
        for (std::int64_t i = 0; i < each_line && ahead.lines > 0; ++i, --ahead.lines, ahead.panel += 64)
          __builtin_prefetch(ahead.panel, 0, 2);
        for (std::int64_t i = 0; i < each && before.done < before.count; ++i) finish_row<Kind>(before);
      }
      Unit::template store<0>(sums, 4 * wide);
      Unit::template store<1>(sums + lanes, 4 * wide);
      if constexpr (Halves == 2) Unit::template store<2>(sums + Unit::rows * wide, 4 * wide);
      if constexpr (Halves == 2) Unit::template store<3>(sums + Unit::rows * wide + lanes, 4 * wide);
    }
  }

  /// Computes sums again in f32 where the unit may have lost subnormal numbers.
  void look(made& b) const {
    if (b.with.largest == 255) return compute_again(b);
    const float bound = doubtful_below(b.with.largest);
    vector least[4] = {all_of(bound), all_of(bound), all_of(bound), all_of(bound)};
    for (std::int64_t k0 = 0, at = 0; k0 < s_.K; k0 += depth_, at += block)
      for (std::int64_t i = 0; i < b.count * wide; i += 2 * lanes) {
        keep_least(least[i / (2 * lanes) % 2], load_vector(b.sums + at + i));
        keep_least(least[2 + i / (2 * lanes) % 2], load_vector(b.sums + at + i + lanes));
      }
    for (int i = 1; i < 4; ++i) keep_least(least[0], least[i]);
    if (any_below(least[0], bound)) compute_again(b);
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
  /// Rounds to bf16. NaN has zeros in its lower half, as bf16 has.
  static ISOTOPE_INLINE vector as_bf16(const vector& v) {
    const auto u = std::bit_cast<lanewise::words>(v);
    return std::bit_cast<vector>((u + ((u >> 16 & 1u) + 0x7fffu)) & 0xffff'0000u);
  }
  template <unit_body::kind Kind> static ISOTOPE_INLINE vector finished(vector y, const bfloat16* bias, const bfloat16* residual) {
    if constexpr (Kind == unit_body::kind::none) return y;
    y = load(bias, whole_vector{}) + as_bf16(y);
    if constexpr (Kind == unit_body::kind::gelu) y = lanewise::gelu_erf_bf16(as_bf16(y));
    if constexpr (Kind == unit_body::kind::residual) y = load(residual, whole_vector{}) + as_bf16(y);
    return y;
  }
  template <unit_body::kind Kind> ISOTOPE_INLINE void finish_row(made& b) const {
    const std::int64_t i = b.done++;
    const std::int64_t at = (b.m + i) * s_.N + b.n;
    const float* from = b.sums + i * wide;
    vector y = load_vector(from), z = load_vector(from + lanes);
    for (std::int64_t k0 = depth_; k0 < s_.K; k0 += depth_) {
      from += block;
      y += load_vector(from);
      z += load_vector(from + lanes);
    }
    bfloat16* const to = l_.out[0].as<bfloat16>() + at;
    const bfloat16 *bias = to, *residual = to;  // not read
    if constexpr (Kind != unit_body::kind::none) bias = body_.bias + b.n;
    if constexpr (Kind == unit_body::kind::residual) residual = body_.residual + at;
    store(to, finished<Kind>(y, bias, residual), finished<Kind>(z, bias + lanes, residual + lanes));
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  unit_body body_;
  packed_weight weight_;
  const float* packed_;
  std::int64_t depth_;  // of a block of K
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
