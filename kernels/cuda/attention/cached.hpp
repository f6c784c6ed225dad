#pragma once
/// Attention over cached keys and values as kernels see it: which operands they take, their arguments, and the parts that positions are divided into.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>

#include <isotope/kernels/cuda/attention/cached.h>
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/op/attention_cached.hpp>

namespace isotope::cuda {

/// What the choice of a variant depends on. Of a batch-invariant plan `rows` is 0: the bits of a row do not depend on how many others there are.
struct cached_problem {
  std::int64_t T = 0, heads = 1, groups = 1, chunk = 64;  // positions; query heads, key-value heads; positions that a block reads at once
  std::int64_t part_bytes = 0, room = 0;                  // scratch memory of one part of all rows, and what there is
  std::string_view copies{};                              // why blocks that copy do not take the operands; empty: they do
  std::int64_t rows = 0, multiprocessors = 132;           // rows: 0 where the choice must be the same for any number of them
  std::int64_t window = 0;                                // positions that a row attends to at most; 0: all
};

struct cached_cost {
  double seconds = 0;
};

/// How a query's positions are read: by blocks that walk over rows and heads and copy (cached_copies.cuh), or by a block for `queries` query heads of a key-value
/// head, of which `splits` divide the positions.
struct cached_variant {
  bool copies;
  std::int64_t queries, splits;

  constexpr std::string_view unfit(const cached_problem& p) const {
    if (copies && !p.copies.empty()) return p.copies;
    if (queries > 1 && p.heads == p.groups) return "every key-value head has one query head";
    if (splits > 1 && splits / 2 * p.chunk >= p.T) return "there are too few positions to divide";
    if (splits > 1 && splits * p.part_bytes > p.room) return "its parts need more scratch memory than was planned";
    return {};
  }
  /// Blocks of a cluster take 2 us to exchange their sums. With them 1,025 positions take less time than by one block, 1,024 do not. Blocks that copy take 26.4 us for
  /// 512 positions of 64 rows on an H200 where others take 34.2. Blocks of fewer query heads read the positions as often as there are more of them.
  constexpr cached_cost cost_of(const cached_problem& p) const {
    if (p.rows > 0) return {seconds_of_rows(p)};
    constexpr double exchange = 2e-6, position = exchange / (1024.5 * 7 / 8), uncopied = 34.2 / 26.4;
    const std::int64_t repeats = p.heads / p.groups, least = (repeats + most_queries - 1) / most_queries;
    // Whole groups of queries are counted. NOLINTNEXTLINE(bugprone-integer-division)
    const double reads = double((repeats + queries - 1) / queries) / double(least);
    const double slower = splits == 1 && !copies && p.copies.empty() ? uncopied : 1;
    return {double(p.T) * position * reads * slower / double(splits) + (splits > 1 ? exchange : 0)};
  }
  std::string name(const cached_cost&) const {
    const auto count = [](std::int64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
    return "cached attention: " + (copies ? std::string("copies") : "blocks of " + count(queries, "head") + ", " + count(splits, "part"));
  }
  static constexpr std::int64_t most_queries = 4;

 private:
  /// With so many rows, half of whose positions are filled: on average over all steps until caches are full, the same variant is the fastest, as times grow by the position. Of an H200 with
  /// heads of 64 in bf16, 1 to 64 rows and caches of 256 to 8,192 positions (bench/PREDICTIONS.md). A block reads a position in 8 ns, for four query heads in 16. With more heads of rows than
  /// multiprocessors, the one that has most blocks ends last; blocks that divide positions are spread more evenly. They exchange sums in 1.2 to 2 us, and later where several clusters share
  /// multiprocessors. Blocks that copy begin later, and read faster where there are many, and from memory rather than from the second cache, of 50 MB.
  constexpr double seconds_of_rows(const cached_problem& p) const {
    const std::int64_t repeats = p.heads / p.groups, items = p.rows * p.groups * ((repeats + queries - 1) / queries);
    const double at_once = double(std::min(queries, repeats)), load = double(items) / double(p.multiprocessors);
    // Whole items of a multiprocessor are counted. NOLINTNEXTLINE(bugprone-integer-division)
    const auto most = double((items + p.multiprocessors - 1) / p.multiprocessors);
    const double position = 8e-9 * 32 / double(p.chunk) * (1 + (at_once - 1) / 3);
    const double filled = p.window > 0 ? std::min(0.5 * double(p.T), double(p.window)) : 0.5 * double(p.T);
    const double bytes = double(p.rows * p.groups) * filled * 8192 / double(p.chunk);
    const double far = !copies && bytes > 64e6 ? 34.2 / 26.4 : 1;
    const double share = copies ? 0.83 * most : splits == 1 ? 0.9 * most : std::max(0.95 * load, 1.35 * load - 0.6);
    const double reading = filled * position * far * std::max(1 / double(splits), share);
    if (splits == 1) return reading + (copies ? 0.45e-6 : 0);
    const double exchange = (splits == 2 ? 1.2e-6 : splits == 4 ? 1.4e-6 : 2e-6) + 0.4e-6 * (at_once - 1);
    return reading + exchange * std::max(1.0, load * double(splits * splits) * at_once / 12);
  }
};
inline constexpr std::array<cached_variant, 9> cached_variants{
    {{true, 1, 1}, {false, 1, 1}, {false, 4, 1}, {false, 1, 8}, {false, 4, 8}, {false, 1, 4}, {false, 4, 4}, {false, 1, 2}, {false, 4, 2}}};

struct cached_attention {
  /// Instances of a kernel for 4, 8, 16 and 32 threads of a position, of 16 bytes each, and for 1 and 4 query heads of a block.
  struct functions {
    std::array<std::array<std::string_view, 2>, 4> f32, bf16;
    std::array<std::string_view, 4> copies{};  // empty: there are none
  };
  static constexpr std::int64_t most_splits = 8, most_rows = 65535;

  const view &q, &keys, &values, &sequence, &position, &y;
  std::int64_t heads, window, N, G, T, D, lanes;
  double scale;
  bool batch_invariant;
  cached_variant variant{false, 1, 1};

  explicit cached_attention(const launch& l)
      : q(l.in[0]), keys(l.in[1]), values(l.in[2]), sequence(l.in[3]), position(l.in[4]), y(l.out[0]) {
    const auto c = l.constants<op::attention_cached>();
    heads = c.heads, window = c.window, scale = c.scale, batch_invariant = c.batch_invariant;
    N = q.dims[0], G = keys.dims[1], T = keys.dims[2], D = keys.dims[3];
    lanes = lanes_of(D, size_of(keys.type));
  }

  /// Returns why the kernels do not take these operands; empty if they do.
  std::string_view obstacle() const {
    const dtype t = keys.type;
    constexpr std::int64_t most = std::int64_t(1) << 31;
    if ((t != dtype::f32 && t != dtype::bf16) || q.type != t || values.type != t || y.type != t) return "operands have different formats";
    const std::int64_t run = 16 / size_of(t);
    if (D % run != 0) return "rows of a head are not whole vectors";
    if (lanes > 32) return "a head is too large";
    if (q.strides[0] % run != 0 || q.at % 16 != 0 || keys.at % 16 != 0 || values.at % 16 != 0) return "rows are not aligned";
    if (T >= most / 2 || keys.dims[0] >= most || N > most_rows || heads * most_splits >= most || N * heads >= most)
      return "a size is too large for 32 bits";
    return {};
  }
  std::string_view function(const functions& f) const {
    const std::size_t k = lanes <= 4 ? 0 : lanes <= 8 ? 1 : lanes <= 16 ? 2 : 3;
    if (variant.copies) return f.copies[k];
    return (keys.type == dtype::f32 ? f.f32 : f.bf16)[k][variant.queries == 1 ? 0 : 1];
  }
  /// Takes the fastest variant. @param multiprocessors  of Hopper, which has blocks that copy and blocks that exchange sums; 0: of another device
  /// @param room  bytes of scratch memory for parts, where blocks do not exchange them
  void choose(std::int64_t multiprocessors, std::int64_t room, kernel_choices* considered) {
    cached_problem p{.T = T, .heads = heads, .groups = G, .chunk = gpu::cached_threads / lanes};
    const bool copies = multiprocessors > 0;
    if (!copies) p.part_bytes = 4 * N * heads * (D + 2), p.room = room;
    else if (!batch_invariant) p.rows = N, p.multiprocessors = multiprocessors, p.window = window;
    p.copies = !copies                    ? "it is for Hopper"
               : keys.type != dtype::bf16 ? "it takes only bf16"
               : heads != G               ? "several query heads share a key-value head"
                                          : "";
    if (const auto* v = choose_kernel(cached_variants, p, considered).variant) variant = *v;
  }
  grid walking_blocks(std::int64_t multiprocessors) const {
    return per_block(std::min(N * G, gpu::copied_blocks * multiprocessors), gpu::copied_threads,
                     gpu::copied_fixed_bytes + lanes * gpu::copied_bytes_of_lane);
  }
  std::int64_t splits() const { return variant.splits; }
  grid blocks() const {
    grid g = per_block(G * query_blocks() * splits(), gpu::cached_threads);
    g.y = std::uint32_t(N);
    return g;
  }

  gpu::cached_heads arguments() const {
    gpu::cached_heads a{};
    a.q = q.at;
    a.y = y.at;
    a.keys = keys.at;
    a.values = values.at;
    a.sequence = sequence.at;
    a.position = position.at;
    a.q_stride = q.strides[0];
    a.y_stride = y.strides[0];
    a.N = N;
    a.B = keys.dims[0];
    a.T = T;
    a.G = std::int32_t(G);
    a.D = std::int32_t(D);
    a.repeats = std::int32_t(heads / G);
    a.blocks = std::int32_t(query_blocks());
    a.splits = std::int32_t(splits());
    a.window = std::int32_t(std::min(window, T));
    a.scale = float(scale * std::numbers::log2e);
    return a;
  }

  /// Threads that hold a position together: a power of two from 4 on.
  static constexpr std::int64_t lanes_of(std::int64_t D, std::int64_t bytes) {
    std::int64_t n = bytes == 4 ? 8 : 4;
    while (16 * n < D * bytes) n *= 2;
    return n;
  }
  /// How many parts of a query's positions scratch memory is planned for: as many as are chosen.
  static constexpr std::int64_t planned_splits(std::int64_t T, std::int64_t D, std::int64_t bytes) {
    const cached_problem p{.T = T, .chunk = gpu::cached_threads / lanes_of(D, bytes), .copies = "it is for Hopper"};
    const auto* v = choose_kernel(cached_variants, p).variant;
    return v == nullptr ? 1 : v->splits;
  }

 private:
  std::int64_t query_blocks() const { return (heads / G + variant.queries - 1) / variant.queries; }
};

}  // namespace isotope::cuda
