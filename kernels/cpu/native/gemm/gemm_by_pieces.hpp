#pragma once
/// An f32 product with a packed weight on a matrix unit for bf16, of three pieces of each number: a = ah + am + al, b likewise, and
/// a b = ah bl + ah bh + ah bm + am bm + am bh + al bh.
///
/// What is left out, am bl + al bm + al bl, is at most 2^-23 |a b|, two roundings of f32, and 2^-25 |a b| in the mean (Henry, Tang & Heinecke 2019, arXiv
/// 1904.06376). Sums of 32 terms are added in ascending order of K, the six products of each in the order above, so an element's bits depend on its row, its
/// column and K alone. Where the unit lost something that shows in f32, and where numbers are not finite, a sum is computed again by vector instructions.
///
/// Bound by the unit: 24 products of tiles for 32 x 32 sums and 32 terms need 14 loads of 1 KB; with fewer rows by the bytes of the pieces, 6 a number. Pieces of a
/// cell's rows stay in L2; those of the next panel are fetched meanwhile. Tried without gain: the weight's f32 split in each product, between products (16 clocks for 16
/// numbers, as long as the unit takes for 64 rows), or meanwhile (loads of tiles then wait for stores with the same place in a page).
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/native/gemm/cells.hpp>
#include <isotope/kernels/cpu/native/gemm/lines_ahead.hpp>
#include <isotope/kernels/cpu/native/gemm/matrix_unit.hpp>
#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/pieces.hpp>
#include <isotope/kernels/cpu/native/gemm/weight_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class Unit> class gemm_by_pieces {
  using tile = piece_tiles;
  static constexpr std::int64_t high = 2 * tile::rows, cols = weight_pieces::cols, planes = tile::planes, terms = tile::terms;
  static_assert(Unit::rows == tile::rows && Unit::terms == terms);

 public:
  /// Whether a weight of these sizes has pieces.
  static constexpr bool takes(std::int64_t N, std::int64_t K) { return N >= cols && K >= 3 * terms; }
  /// With fewer rows, vector instructions are faster.
  static constexpr std::int64_t least_rows = 128;
  /// The longest serial sum: six products for each tile of a block of K, 16 terms of one product, the other blocks, and what is left out.
  static constexpr std::int64_t chain(std::int64_t K) {
    const std::int64_t tiles = divide_up(K, terms), block = block_of(tiles);
    return 6 * block + 20 + divide_up(tiles, block);
  }
  /// Returns the bytes of scratch for M rows.
  static constexpr std::int64_t bytes(std::int64_t M, std::int64_t K) {
    return 2 * planes * smaller(whole(M, high), most_rows) * whole(K, terms);
  }

  /// @param weight   the weight in f32
  /// @param pieces   and in pieces, a weight_pieces
  /// @param scratch  of so many bytes, at least `bytes`
  gemm_by_pieces(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, const float* weight,
                 float* pieces, void* scratch, std::int64_t scratch_bytes)
      : l_(l),
        s_(s),
        epilogue_(epilogue),
        panels_(s.N, s.K),
        pieces_(s.N, s.K),
        weight_(weight),
        split_(pieces),
        rows_(static_cast<bfloat16*>(scratch)),
        room_(scratch_bytes / 2),
        tiles_(divide_up(s.K, terms)),
        block_(block_of(tiles_)) {}

  void run() const {
    for (std::int64_t m = 0; m < s_.M; m += most_rows) run(m, smaller(s_.M, m + most_rows));
  }

 private:
  static constexpr std::int64_t cell_pieces = 5 << 17;  // of rows: 1.25 MB
  static constexpr std::int64_t most_rows = 1024;       // whose pieces are in scratch at once
  static constexpr std::int64_t most_tiles = 24;        // of a block of K, whose sums stay in the unit
  static constexpr std::int64_t square = high * cols;   // sums of a strip and a panel
  static constexpr std::int64_t block_of(std::int64_t tiles) { return even_part(larger_of(1, tiles), most_tiles, 1); }

  /// What is fetched while a strip is multiplied with a panel: a part of the next panel, and the lines of results.
  using coming = lines_ahead<2>;

  /// Makes rows [begin, end).
  void run(std::int64_t begin, std::int64_t end) const {
    const std::int64_t M = end - begin, row_pieces = planes * terms * tiles_, part = whole(M, high) * row_pieces;
    const std::int64_t panels = pieces_.count(), most_parts = larger_of(1, room_ / part);
    const auto narrower = [=](std::int64_t across, std::int64_t down) {
      return down <= 4 * high && across > 2 && 2 * divide_up(panels, across) <= most_parts ? divide_up(across, 2) : 0;
    };
    const gemm_cells all{panels, M, panels, even_part(M, cell_pieces / row_pieces, high)};
    const auto cells = all.divided(cells_for(threads_of(l_), 2), narrower, high, high);
    const double nsec = double(M) * double(s_.K) * (0.1 + double(s_.N) / 130.0);
    portable::for_uneven_tasks(l_, cells.count(), nsec, [&](std::int64_t t, int) {
      gemm_cell c = cells.by_rows(t);
      bfloat16* const pieces = rows_ + c.p0 / cells.across * part + c.m * row_pieces;
      c.m += begin;
      fill(c, pieces);
    });
  }
  /// @param pieces  of the cell's rows
  void fill(const gemm_cell& c, bfloat16* pieces) const {
    alignas(64) float sums[2 * square];
    const Unit held;
    const std::int64_t strips = divide_up(c.rows, high);
    for (std::int64_t m = 0; m < c.rows; m += high) {
      const std::int64_t some = smaller(high, c.rows - m);
      split_rows(left(c.m + m), s_.a_row, s_.a_k, some, s_.K, some > tile::rows ? 2 : 1, pieces + planes * terms * tiles_ * m);
    }
    const auto* const weight = reinterpret_cast<const bfloat16*>(split_);
    for (std::int64_t p = c.p0; p < c.p1; ++p)
      for (std::int64_t i = 0; i < strips; ++i) {
        const std::int64_t m = c.m + i * high, some = smaller(high, c.rows - i * high), tall = some > tile::rows ? 2 : 1;
        coming ahead = results_of(m, some, p);
        if (p + 1 < c.p1) {
          const std::int64_t all = (pieces_.at(p + 1, tiles_) - pieces_.at(p + 1, 0)) * 2 / 64;
          ahead.panel = reinterpret_cast<const std::byte*>(weight + pieces_.at(p + 1, 0)) + 64 * (all * i / strips);
          ahead.lines = all * (i + 1) / strips - all * i / strips;
        }
        ahead.divide(tiles_);
        for (std::int64_t t = 0; t < tiles_; t += block_) {
          const bfloat16* a = pieces + planes * terms * (tiles_ * i * high + t * tall * tile::rows);
          multiply(a, weight + pieces_.at(p, t), some, pieces_.vectors(p), smaller(block_, tiles_ - t), sums + (t > 0 ? square : 0), ahead);
          for (std::int64_t j = 0; t > 0 && j < square; j += lanes) {
            const vector y = load_vector(sums + j) + load_vector(sums + square + j);
            __builtin_memcpy(sums + j, &y, sizeof y);
          }
        }
        look(m, some, p, sums);
        epilogue_.finish(0, m, m + some, p * cols, smaller(s_.N, (p + 1) * cols), sums, cols);
      }
  }
  const float* left(std::int64_t m) const { return l_.in[0].as<const float>() + s_.offset_a(0) + m * s_.a_row; }
  coming results_of(std::int64_t m, std::int64_t rows, std::int64_t p) const {
    const view& y = l_.out[0];
    coming r;
    r.row_bytes = s_.N * size_of(y.type);
    r.result = y.as<const std::byte>() + m * r.row_bytes + p * cols * size_of(y.type);
    r.rows = rows;
    return r;
  }

  static void multiply(const bfloat16* a, const bfloat16* b, std::int64_t rows, std::int64_t vectors, std::int64_t tiles, float* sums,
                       coming& ahead) {
    if (vectors == 2) rows > tile::rows ? multiply<2, 2>(a, b, tiles, sums, ahead) : multiply<1, 2>(a, b, tiles, sums, ahead);
    else rows > tile::rows ? multiply<2, 1>(a, b, tiles, sums, ahead) : multiply<1, 1>(a, b, tiles, sums, ahead);
  }
  /// sums[i cols + j] = the six products of a block of K, for 16 Halves rows and 16 Vectors columns.
  template <int Halves, int Vectors>
  ISOTOPE_NOINLINE static void multiply(const bfloat16* a, const bfloat16* b, std::int64_t tiles, float* sums, coming& ahead) {
    constexpr std::int64_t size = tile::size;
    constexpr int all = Halves * Vectors;
    each<all>([]<int C>(std::integral_constant<int, C>) ISOTOPE_INLINE_LAMBDA { Unit::template zero<C>(); });
    const auto rows = [&]<int Plane>(std::integral_constant<int, Plane>) ISOTOPE_INLINE_LAMBDA {
      Unit::template load<4>(a + Plane * Halves * size, 64);
      if constexpr (Halves == 2) Unit::template load<5>(a + (Plane * Halves + 1) * size, 64);
    };
    const auto times = [&]<int Plane, bool Loads>(std::integral_constant<int, Plane>, std::bool_constant<Loads>) ISOTOPE_INLINE_LAMBDA {
      each<Vectors>([&]<int V>(std::integral_constant<int, V>) ISOTOPE_INLINE_LAMBDA {
        if constexpr (Loads) Unit::template load<6 + V>(b + (Plane * Vectors + V) * size, 64);
        Unit::template add_pairs<V, 4, 6 + V>();
      });
      if constexpr (Halves == 2)
        each<Vectors>([&]<int V>(std::integral_constant<int, V>)
                          ISOTOPE_INLINE_LAMBDA { Unit::template add_pairs<Vectors + V, 5, 6 + V>(); });
    };
    constexpr std::integral_constant<int, 0> upper;
    constexpr std::integral_constant<int, 1> middle;
    constexpr std::integral_constant<int, 2> lower;
    for (; tiles > 0; --tiles) {
      rows(upper);
      times(lower, std::true_type{});
      times(upper, std::true_type{});
      times(middle, std::true_type{});
      rows(middle);
      times(middle, std::false_type{});
      times(upper, std::true_type{});
      rows(lower);
      times(upper, std::false_type{});
      a += planes * Halves * size;
      b += planes * Vectors * size;
      ahead.fetch();
    }
    each<all>([&]<int C>(std::integral_constant<int, C>) ISOTOPE_INLINE_LAMBDA {
      Unit::template store<C>(sums + C / Vectors * tile::rows * cols + C % Vectors * lanes, 4 * cols);
    });
  }
  template <int N, class F> static ISOTOPE_INLINE void each(const F& f) {
    [&]<int... I>(std::integer_sequence<int, I...>)
        ISOTOPE_INLINE_LAMBDA { (f(std::integral_constant<int, I>{}), ...); }(std::make_integer_sequence<int, N>{});
  }

  /// Checks the sums of a strip and a panel and computes those again that may be wrong.
  void look(std::int64_t m, std::int64_t rows, std::int64_t p, float* sums) const {
    const column_bounds b = pieces_.bounds(split_, p);
    for (std::int64_t v = 0; v < pieces_.vectors(p) * lanes; v += lanes) {
      float largest = 0;
      for (std::int64_t j = v; j < v + lanes; ++j) largest = b.bound[j] > largest ? b.bound[j] : largest;
      vector low[2] = {largest - vector{}, largest - vector{}}, none[2]{};
      for (std::int64_t i = 0; i < rows; ++i) {
        const vector y = load_vector(sums + i * cols + v);
        keep_least(low[i % 2], y);
        none[i % 2] = isa::fma_lanes(y, vector{}, none[i % 2]);
      }
      keep_least(low[0], low[1]);
      if (any_below(low[0], largest) || !same(none[0] + none[1])) look_at_each(m, rows, p * cols + v, b.bound + v, b.least + v, sums + v);
    }
  }
  /// Whether no element is NaN.
  static bool same(const vector& v) {
    bool all = true;
    for (std::int64_t j = 0; j < lanes; ++j) all &= v[j] == v[j];
    return all;
  }
  ISOTOPE_NOINLINE void look_at_each(std::int64_t m, std::int64_t rows, std::int64_t n, const float* bound, const float* least,
                                     float* sums) const {
    std::uint32_t wrong[high] = {}, any = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      float smallest = -1;
      for (std::int64_t j = 0; j < smaller(lanes, s_.N - n); ++j) {
        const float y = __builtin_fabsf(sums[i * cols + j]);
        if (y >= bound[j] && y < __builtin_inff()) continue;
        if (y < __builtin_inff() && bound[j] < __builtin_inff()) {
          if (smallest < 0) smallest = least_of_row(left(m + i));
          if (nothing_flushed(smallest, least[j])) continue;
        }
        wrong[i] |= 1u << j;
      }
      any |= wrong[i];
    }
    if (any != 0) compute_again(m, rows, n, wrong, sums);
  }
  /// The least magnitude but zero of a row; infinite if all are zero.
  float least_of_row(const float* x) const {
    std::uint32_t r = 0xffff'ffffu;
    for (std::int64_t k = 0; k < s_.K; ++k) {
      const std::uint32_t u = (std::bit_cast<std::uint32_t>(x[k * s_.a_k]) & 0x7fff'ffffu) - 1;
      r = u < r ? u : r;
    }
    return r == 0xffff'ffffu ? __builtin_inff() : std::bit_cast<float>(r + 1);
  }
  /// Whether no piece, product or sum is subnormal: they are multiples of 2^-46 times the powers of two below the least magnitudes.
  static bool nothing_flushed(float a, float b) {
    const auto exponent = [](float x) { return int(std::bit_cast<std::uint32_t>(x) >> 23); };
    return a == __builtin_inff() || b == __builtin_inff() || (exponent(a) >= 24 && exponent(a) + exponent(b) >= 174);
  }
  /// Computes the elements of `wrong` as the vector kernels do.
  void compute_again(std::int64_t m, std::int64_t rows, std::int64_t n, const std::uint32_t* wrong, float* sums) const {
    alignas(64) float y[high * lanes];
    const std::int64_t depth = gemm_partition::depth_of(s_.K, 1, 1), p = n / weight_panels::cols;
    for (std::int64_t k0 = 0; k0 < s_.K; k0 += depth)
      for (std::int64_t i = 0; i < rows; ++i)
        if (wrong[i] != 0)
          microkernel<1, 1>(left(m + i) + k0 * s_.a_k, s_.a_row, s_.a_k, weight_ + panels_.at(p, k0) + n % weight_panels::cols,
                            panels_.width(p), y + i * lanes, lanes, smaller(depth, s_.K - k0), k0 > 0);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < lanes; ++j)
        if (wrong[i] >> j & 1) sums[i * cols + j] = y[i * lanes + j];
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  weight_panels panels_;
  weight_pieces pieces_;
  const float* weight_;
  float* split_;
  bfloat16* rows_;
  std::int64_t room_;           // for pieces of rows
  std::int64_t tiles_, block_;  // tiles of K, and of a block of it
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
