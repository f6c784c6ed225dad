#pragma once
/// The product of f32 rows with panels of a weight's rows: x W^T. Panels are packed once, when a weight is stored, or by the tasks that multiply them.
///
/// Bound by multiply-adds; for few rows by the bytes of the weights, which are read as one contiguous run. With panels of weights that are stored so, neither operand
/// is copied in a step; a task that packs its panels does so once for up to 528 rows, 1 to 2 % of the time, where packing x and transposing the result takes 4 to 12 %
/// more for 512 rows. And 16 rows would fill tiles of one vector there, whose every multiply-add needs a load: 0.5 to 0.7 of the rate of the tile here.
///
/// The next block of panels is prefetched a line or three with each term, not a dozen lines before every 16 terms: 1.5 % for the division of the loop, and 16 rows
/// take 0.8 of the time (Zen 4).
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/panel_body.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>
#include <isotope/kernels/cpu/native/gemm/weight_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// What is prefetched while a register tile is made: with each term so many cache lines, which begin `step` floats after those before.
template <int Lines> struct panel_ahead {
  static constexpr bool with_each_term = true;
  const float* at;
  std::int64_t step;

  template <int> ISOTOPE_INLINE void fetch(std::int64_t) {
#pragma GCC unroll 3
    for (int i = 0; i < Lines; ++i) __builtin_prefetch(at + i * rows_ahead::line, 0, 2);
    at += step;
  }
};

/// The rows of a weight that are packed next: with each term a cache line, row by row.
struct weight_rows_ahead {
  static constexpr bool with_each_term = true;
  const float* at;
  std::int64_t left, lines, skip;  // lines of this row and of a row; floats from the end of a row to the next one

  template <int> ISOTOPE_INLINE void fetch(std::int64_t) {
    __builtin_prefetch(at, 0, 2);
    at += rows_ahead::line;
    if (--left == 0) at += skip, left = lines;
  }
};

/// An element's terms are added in the order of the other products: one block of K after another.
///
/// @tparam P  the program's precision
template <class P> class gemm_by_panels {
 public:
  /// @param packed  the right operand is weight_panels of the weight; otherwise its rows, where they are contiguous
  gemm_by_panels(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue, bool packed)
      : l_(l), s_(s), epilogue_(epilogue), packed_(packed), body_(l, s.N), panels_(s.N, s.K), depth_(gemm_partition::depth_of(s.K, 1, 1)) {}

  void run() const {
    const bool in_l2 = packed_ && (s_.K > depth_ || s_.M > panel_cells::most_rows);
    const auto cells = panel_cells::of(s_.M, s_.N, s_.batches, threads_of(l_), in_l2 ? panel_cells::rows_in_l2 : panel_cells::most_rows);
    portable::for_uneven_tasks(l_, s_.batches * cells.count(), product_nsec(s_.batches, s_.M, s_.N, s_.K),
                               [&](std::int64_t t, int) { fill(cells.by_panels(t)); });
  }

 private:
  static constexpr int tall = int(weight_panels::rows);
  static constexpr std::int64_t few_rows = 8 * weight_panels::rows;  // weights that are packed are read as one run

  struct block {
    std::int64_t p, k0;
  };
  /// Where the sums of a panel go: rows of `ld` sums, or one register tile after the other to the same place.
  struct place_in_cell {
    float* at;
    std::int64_t ld;
    bool once, last;               // the sums have one block of K; this is their last one
    std::int64_t element, column;  // of the result
  };

  void fill(const gemm_cell& c) const {
    alignas(64) float tile[panel_cells::tile_floats];
    alignas(64) float room[weight_panels::cols * blocking::depth];
    const std::int64_t n0 = weight_panels::start(c.p0), ld = weight_panels::start(c.p1 - 1) + panels_.width(c.p1 - 1) - n0;
    const std::int64_t wide = c.p1 - c.p0, deep = larger_of(1, divide_up(s_.K, depth_)), count = wide * deep;
    const bool one_run = packed_ && c.rows <= few_rows, once = body_.known() && deep == 1;
    const auto nth = [&](std::int64_t i) -> block {
      if (i < count) return one_run ? block{c.p0 + i / deep, i % deep * depth_} : block{c.p0 + i % wide, i / wide * depth_};
      return {c.m + c.rows < s_.M || c.p1 == panels_.count() ? c.p0 : c.p1, 0};  // of the next cell
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const block b = nth(i);
      const std::int64_t n = weight_panels::start(b.p);
      const place_in_cell to{tile + (once ? 0 : n - n0), once ? panels_.width(b.p) : ld,    once,
                             b.k0 + depth_ >= s_.K,      (c.batch * s_.M + c.m) * s_.N + n, n};
      multiply(c, b, nth(i + 1), to, room);
    }
    if (!body_.known()) epilogue_.finish(c.batch, c.m, c.m + c.rows, n0, smaller(s_.N, n0 + ld), tile, ld);
  }
  template <class... Ahead> struct microkernels {
    using make = void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t, std::int64_t, bool,
                          Ahead...);
    static constexpr make of[3][4] = {
        {&microkernel<1, 1, Ahead...>, &microkernel<2, 1, Ahead...>, &microkernel<4, 1, Ahead...>, &microkernel<tall, 1, Ahead...>},
        {&microkernel<1, 2, Ahead...>, &microkernel<2, 2, Ahead...>, &microkernel<4, 2, Ahead...>, &microkernel<tall, 2, Ahead...>},
        {&microkernel<1, 3, Ahead...>, &microkernel<2, 3, Ahead...>, &microkernel<4, 3, Ahead...>, &microkernel<tall, 3, Ahead...>}};
  };
  /// Adds one block of K of a panel to a cell.
  void multiply(const gemm_cell& c, const block& b, const block& next, const place_in_cell& to, float* room) const {
    const auto* w = l_.in[1].as<const float>();
    const std::int64_t width = panels_.width(b.p), k = terms(b);
    const auto make = [&](const auto& of, const float* x, const float* panel, float* sums, auto... ahead) {
      of(x, s_.a_row, s_.a_k, panel, width, sums, to.ld, k, b.k0 > 0, ahead...);
    };
    const auto read = [&]<int Lines>(std::integral_constant<int, Lines>, std::int64_t step) {
      using ahead = panel_ahead<Lines>;
      const float *here = w + panels_.at(b.p, b.k0), *there = w + panels_.at(next.p, next.k0);
      by_tiles(c, b, to, [&](std::int64_t i, int size, const float* x, float* sums) {
        make(microkernels<ahead>::of[width / lanes - 1][size], x, here, sums, ahead{there + i * step * k, step});
      });
    };
    if (packed_) {
      const std::int64_t step = divide_up(width, divide_up(c.rows, weight_panels::rows));
      if (step > rows_ahead::line) read(std::integral_constant<int, 3>{}, step);
      else read(std::integral_constant<int, 1>{}, step);
      return;
    }
    panels_.pack(w, s_.b_col, b.p, b.k0, k, room);
    // Lines that came with earlier tiles would leave L2 before they are packed, since x passes through it.
    constexpr std::int64_t line = rows_ahead::line;
    const float* const from = w + weight_panels::start(next.p) * s_.b_col + next.k0;
    const std::int64_t lines = larger_of(1, divide_up(terms(next), line)), all = panels_.elems(next.p) * lines;
    const std::int64_t first = c.rows / tall - divide_up(all, larger_of(1, k));
    by_tiles(c, b, to, [&](std::int64_t i, int size, const float* x, float* sums) {
      const auto& usual = microkernels<>::of[width / lanes - 1][size];
      if (i < first || size < 3 || width < weight_panels::cols) return make(usual, x, room, sums);
      const std::int64_t done = (i - first) * k, row = done / lines, at = done % lines;
      make(&microkernel<tall, int(weight_panels::vectors), weight_rows_ahead>, x, room, sums,
           weight_rows_ahead{from + row * s_.b_col + at * line, lines - at, lines, s_.b_col - lines * line});
    });
  }
  std::int64_t terms(const block& b) const { return smaller(depth_, s_.K - b.k0); }

  /// run(i, size, x, sums): makes register tile i, of 1, 2, 4 or weight_panels::rows rows (`size` 0 to 3).
  template <class F> void by_tiles(const gemm_cell& c, const block& b, const place_in_cell& to, const F& run) const {
    const float* x = l_.in[0].as<const float>() + s_.offset_a(c.batch) + c.m * s_.a_row + b.k0 * s_.a_k;
    std::int64_t tile = 0;
    each_row_tile<tall>(c.rows, [&](int size, std::int64_t row, std::int64_t rows) ISOTOPE_INLINE_LAMBDA {
      float* const sums = to.at + (to.once ? 0 : row * to.ld);
      run(tile++, size, x + row * s_.a_row, sums);
      if (to.last && body_.known())
        body_.run(sums, to.ld, rows, panels_.width(b.p), to.element + row * s_.N, to.column, l_.out[0].as<float>(), s_.N);
    });
  }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  bool packed_;
  panel_body<P> body_;
  weight_panels panels_;
  std::int64_t depth_;  // of a block of K
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
