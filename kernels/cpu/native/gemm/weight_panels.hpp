#pragma once
/// f32 weights that are packed once, when they are stored, and the product with their transposes: x W^T without a copy of either operand in a step.
///
/// Bound by multiply-adds; for few rows by the bytes of the weights, which are read as one contiguous run. Where weights lie in rows, one operand must be packed
/// in every step and, if that is x, the result transposed: 15 % of the time for 512 rows; and 16 rows fill tiles of one vector, whose every multiply-add needs a
/// load: 0.5 to 0.7 of the rate of the tile here.
#include <isotope/kernels/cpu/gemm/epilogue.hpp>
#include <isotope/kernels/cpu/native/gemm/microkernel.hpp>
#include <isotope/kernels/cpu/native/gemm/partition.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The packed layout of a weight (N, K): panels of `cols` rows of W, which are columns of its transpose, one k after another; the last panel has fewer vectors,
/// padded with zeros.
class weight_panels {
 public:
  // 8 x 48 takes 24 sums and 3 vectors of 32 registers, 35 instructions for 24 multiply-adds, where 12 x 32 takes 38: as fast alone, and faster where another
  // thread shares the core.
  static constexpr std::int64_t vectors = config::vector_registers >= 32 ? 3 : 2, cols = vectors * lanes;
  static constexpr std::int64_t rows = config::vector_registers >= 32 ? 8 : 6;  // of x in a register tile

  constexpr weight_panels(std::int64_t N, std::int64_t K) : N_(N), K_(K) {}
  constexpr std::int64_t elements() const { return whole(N_, lanes) * K_; }
  constexpr std::int64_t count() const { return divide_up(N_, cols); }
  /// Returns the number of the first row of panel p.
  static constexpr std::int64_t start(std::int64_t p) { return p * cols; }
  /// Returns the width of panel p in whole vectors.
  constexpr std::int64_t width(std::int64_t p) const { return smaller(cols, whole(N_ - start(p), lanes)); }
  /// Returns the place of term k of panel p.
  constexpr std::int64_t at(std::int64_t p, std::int64_t k) const { return start(p) * K_ + k * width(p); }

  /// Packs panel p of a weight with contiguous rows.
  void pack(const float* w, std::int64_t p, float* packed) const {
    pack_right(w + start(p) * K_, 1, K_, K_, smaller(cols, N_ - start(p)), width(p), packed + at(p, 0));
  }

 private:
  std::int64_t N_, K_;
};

/// The part of the next block of panels that is prefetched while a tile of this one is made: so many cache lines for every 16 terms.
struct panel_ahead {
  static constexpr std::int64_t most_strips = 8;  // with more tiles, a block is read from memory seldom enough
  const float* at;
  std::int64_t lines;

  template <int> ISOTOPE_INLINE void fetch(std::int64_t) {
    for (std::int64_t i = 0; i < lines; ++i) __builtin_prefetch(at + i * rows_ahead::line, 0, 2);
    at += lines * rows_ahead::line;
  }
};

/// A product with a packed weight. An element's terms are added in the order of the other products: one block of K after another.
class gemm_by_panels {
 public:
  gemm_by_panels(const launch& l, const portable::matmul_shape& s, const portable::gemm_epilogue& epilogue)
      : l_(l), s_(s), epilogue_(epilogue), panels_(s.N, s.K), depth_(gemm_partition::depth_of(s.K, 1, 1)) {}

  void run() const {
    const std::int64_t threads = l_.pool == nullptr ? 1 : l_.pool->size(), wanted = threads == 1 ? 1 : 4 * threads;
    std::int64_t down = smaller(most_rows, s_.M), across = smaller(tile_floats / (most_rows * weight_panels::cols), panels_.count());
    while (divide_up(s_.M, down) * divide_up(panels_.count(), across) * s_.batches < wanted) {
      if (across > 1) across = divide_up(across, 2);
      else if (down > 2 * weight_panels::rows) down = whole(divide_up(down, 2), weight_panels::rows);
      else break;
    }
    down = even_part(s_.M, down, weight_panels::rows);
    across = even_part(panels_.count(), across, 1);
    const std::int64_t low = divide_up(s_.M, down), wide = divide_up(panels_.count(), across);
    const double nsec = double(s_.batches) * double(s_.M) * double(larger_of(s_.K, 8)) * (0.1 + double(s_.N) / 60.0);
    portable::for_uneven_tasks(l_, s_.batches * wide * low, nsec, [&](std::int64_t t, int) {
      const std::int64_t i = t % low * down, p = t / low % wide * across;  // neighbours share panels
      fill(t / (low * wide), i, smaller(down, s_.M - i), p, smaller(panels_.count(), p + across));
    });
  }

 private:
  static constexpr std::int64_t most_rows = whole(96, weight_panels::rows), tile_floats = blocking::tile_floats;
  static_assert(most_rows * weight_panels::cols <= tile_floats);

  /// Whether the weights are read from memory as fast as they are multiplied.
  static bool few(std::int64_t rows) { return rows <= panel_ahead::most_strips * weight_panels::rows; }
  /// Makes rows [m0, m0 + rows) of panels [p0, p1).
  void fill(std::int64_t batch, std::int64_t m0, std::int64_t rows, std::int64_t p0, std::int64_t p1) const {
    alignas(64) float tile[tile_floats];
    const std::int64_t n0 = weight_panels::start(p0), ld = weight_panels::start(p1 - 1) + panels_.width(p1 - 1) - n0;
    const float* x = l_.in[0].as<const float>() + s_.offset_a(batch) + m0 * s_.a_row;
    const auto make = [&](std::int64_t p, std::int64_t k0) {
      multiply(x + k0 * s_.a_k, rows, p, k0, tile + weight_panels::start(p) - n0, ld);
    };
    if (few(rows)) {  // reads the weights as one run
      for (std::int64_t p = p0; p < p1; ++p)
        for (std::int64_t k0 = 0; k0 < s_.K || k0 == 0; k0 += depth_) make(p, k0);
    } else {
      for (std::int64_t k0 = 0; k0 < s_.K || k0 == 0; k0 += depth_)
        for (std::int64_t p = p0; p < p1; ++p) make(p, k0);
    }
    epilogue_.finish(batch, m0, m0 + rows, n0, smaller(s_.N, n0 + ld), tile, ld);
  }
  /// Adds one block of K of a panel to a cell.
  void multiply(const float* x, std::int64_t rows, std::int64_t p, std::int64_t k0, float* to, std::int64_t ld) const {
    const std::int64_t strips = divide_up(rows, weight_panels::rows), width = panels_.width(p);
    const float* w = weights() + panels_.at(p, k0);
    if (s_.a_k == 1 && few(rows)) {
      const std::int64_t lines = divide_up(width, strips);
      by_tiles(x, rows, p, k0, to, ld, panel_ahead{w + smaller(depth_, s_.K - k0) * width, lines});
    } else {
      by_tiles(x, rows, p, k0, to, ld);
    }
  }
  template <class... Ahead>
  void by_tiles(const float* x, std::int64_t rows, std::int64_t p, std::int64_t k0, float* to, std::int64_t ld, Ahead... ahead) const {
    using make =
        void (*)(const float*, std::int64_t, std::int64_t, const float*, std::int64_t, float*, std::int64_t, std::int64_t, bool, Ahead...);
    constexpr int tall = int(weight_panels::rows);
    static constexpr make tiles[3][4] = {
        {&microkernel<1, 1, Ahead...>, &microkernel<2, 1, Ahead...>, &microkernel<4, 1, Ahead...>, &microkernel<tall, 1, Ahead...>},
        {&microkernel<1, 2, Ahead...>, &microkernel<2, 2, Ahead...>, &microkernel<4, 2, Ahead...>, &microkernel<tall, 2, Ahead...>},
        {&microkernel<1, 3, Ahead...>, &microkernel<2, 3, Ahead...>, &microkernel<4, 3, Ahead...>, &microkernel<tall, 3, Ahead...>}};
    const std::int64_t width = panels_.width(p), k = smaller(depth_, s_.K - k0);
    const float* w = weights() + panels_.at(p, k0);
    for (std::int64_t i = 0; i < rows;) {
      const std::int64_t left = rows - i;
      const int size = left >= tall ? 3 : left >= 4 ? 2 : left >= 2 ? 1 : 0;
      tiles[width / lanes - 1][size](x + i * s_.a_row, s_.a_row, s_.a_k, w, width, to + i * ld, ld, k, k0 > 0, ahead...);
      i += size == 3 ? tall : std::int64_t(1) << size;
      ((ahead.at += ahead.lines * k), ...);
    }
  }
  const float* weights() const { return l_.in[1].as<const float>(); }

  const launch& l_;
  const portable::matmul_shape& s_;
  const portable::gemm_epilogue& epilogue_;
  weight_panels panels_;
  std::int64_t depth_;  // of a block of K
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
