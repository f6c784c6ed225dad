#pragma once
/// Attention over cached keys and values. For few queries it is bound by reading the caches, for the tokens of a prompt by multiply-adds and by adding up the
/// lanes of dot products: 8 to 10 ns for a pair of a query and a key with heads of 64 (AVX-512, one busy thread), where the portable kernel takes 18 to 26.
/// A query alone reads rows where they lie, with heads of 64 those of several heads by turns (attention/cached_heads.hpp).
///
/// A dot product has 16 partial sums, which are then added in pairs, for four keys at once; values are added key by key. Tokens of one sequence that follow one
/// another share the keys and values that are loaded, or widened; this changes no sum, so a token has the same bits alone, among others and in any slot.
#include <cmath>
#include <limits>
#include <utility>

#include <isotope/backend/cpu/vendor.hpp>
#include <isotope/kernels/cpu/native/attention/cached_heads.hpp>
#include <isotope/kernels/cpu/native/attention/prompt.hpp>
#include <isotope/kernels/cpu/native/body/programs.hpp>
#include <isotope/kernels/cpu/native/gemm/pack.hpp>
#include <isotope/kernels/cpu/native/math/weight.hpp>
#include <isotope/kernels/cpu/portable/attention_cached.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

class attention_cached {
 public:
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const shape& cache = s.in[1];
    const std::int64_t tasks = divide_up(s.in[0][0], each(s.in[0][0])) * s.constants<op::attention_cached>().heads;
    return 4 * slice_floats(cache[2], cache[3]) * smaller(tasks, portable::max_workers);
  }
  static void run(const launch& l) {
    const auto c = l.constants<op::attention_cached>();
    const op::cache_sizes size(l.in[1].dims);
    const std::int64_t rows = l.in[0].dims[0], some = each(rows);
    const auto *sequence = l.in[3].as<const std::int32_t>(), *position = l.in[4].as<const std::int32_t>();
    double nsec = 0;
    for (std::int64_t n = 0; n < rows; ++n)
      if (size.has(sequence[n], position[n])) nsec += nsec_of(l, c, size, position[n]);
    const std::int64_t blocks = divide_up(rows, some), heads = heads_of_task(l, size.D, blocks), groups = divide_up(c.heads, heads);
    portable::for_uneven_tasks(l, blocks * groups, double(c.heads) * nsec, [&](std::int64_t task, int slice) {
      const std::int64_t first = task / groups * some, h = task % groups * heads;
      tokens(l, c, size, first, smaller(rows, first + some), h, smaller(c.heads, h + heads),
             static_cast<float*>(l.scratch) + slice * slice_floats(size.T, size.D));
    });
  }

  /// The tokens of a task: several where there are enough tasks.
  static constexpr std::int64_t each(std::int64_t rows) { return rows >= 2 * most ? most : 1; }
  /// Scores, results and queries, and rows of a cache that is not in f32.
  static constexpr std::int64_t slice_floats(std::int64_t T, std::int64_t D) {
    return most * (floats(T) + 2 * floats(D)) + few * floats(D);
  }
  /// What a query of one head takes, in the unit of for_tasks. A thread reads keys and values with 10 GB/s, since other steps have put them out of its caches.
  static double nsec_of(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t position) {
    const double bytes = double(size_of(l.in[1].type) + size_of(l.in[2].type)), keys = double(position + 1 - c.first(position));
    return keys * (double(size.D) * (0.1 * bytes + 1.0 / 30.0) + 1.0) + 50.0;
  }
  /// Heads h to h_end - 1 of tokens n to end - 1. `own`: slice_floats.
  static void tokens(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t n,
                     std::int64_t end, std::int64_t h, std::int64_t h_end, float* own) {
    const auto *sequence = l.in[3].as<const std::int32_t>(), *position = l.in[4].as<const std::int32_t>();
    while (n < end) {
      std::int64_t together = 1;
      while (together < most && n + together < end && sequence[n + together] == sequence[n] &&
             position[n + together] == position[n] + together)
        ++together;
      const std::int64_t slot = sequence[n], at = position[n];
      if (!size.has(slot, at)) {
        std::memset(own, 0, std::size_t(size.D) * 4);
        for (std::int64_t i = h; i < h_end; ++i)
          portable::narrow_run(own, l.out[0].data, l.out[0].type, n * l.out[0].strides[0] + i * size.D, size.D);
        ++n;
      } else if (together == most && size.has(slot, at + most - 1) && (c.window == 0 || c.window >= most)) {
        for (std::int64_t i = h; i < h_end; ++i) queries<most, float>(l, c, size, n, i, slot, at, own);
        n += most;
      } else {
        for (std::int64_t i = h; i < h_end;) {
          const std::int64_t done = l.in[1].type == dtype::bf16  ? in_place<bfloat16>(l, c, size, n, i, h_end, slot, at, own)
                                    : l.in[1].type == dtype::f32 ? in_place<float>(l, c, size, n, i, h_end, slot, at, own)
                                                                 : 0;
          if (done == 0 && l.in[1].type == dtype::bf16) queries<1, bfloat16>(l, c, size, n, i, slot, at, own);
          else if (done == 0) queries<1, float>(l, c, size, n, i, slot, at, own);
          i += larger_of(done, 1);
        }
        ++n;
      }
    }
  }

 private:
  static constexpr int most = 4;                       // queries that share keys and values, and heads of one that are read by turns
  static constexpr int head_size = 64;                 // of heads that are read by turns; each other size adds 50 KB of code
  static constexpr int few = 8;                        // rows of a cache that are read at a time
  static constexpr std::int64_t in_advance = 3 * few;  // rows that are fetched before they are read
  static constexpr std::int64_t parts = 16;            // partial sums of a dot product
  static constexpr int wide = config::vector_registers >= 32 ? 4 : 2;  // vectors of a result in registers

  static constexpr std::int64_t floats(std::int64_t n) { return divide_up(n, parts) * parts; }
  /// How many heads of size D are read by turns, with their queries or results in registers; 0: cached_heads has no such heads.
  static constexpr int by_turns(std::int64_t D) { return D != head_size ? 0 : lanes == 16 ? 4 : lanes == 8 ? 1 : 0; }
  /// The heads of a task, where a thread works alone or has enough tasks: those that are read by turns; on Intel's processors two in bf16, and one in f32, which
  /// take 0.9 of the time of four. Two threads that share few heads take them singly: a token behind 512 (GPT-2 124M, bf16) takes 5.5 ms, by pairs 5.85.
  static std::int64_t heads_of_task(const launch& l, std::int64_t D, std::int64_t blocks) {
    const std::int64_t threads = l.pool == nullptr ? 1 : l.pool->size();
    const std::int64_t at_once = threads > 1 && blocks < 4 * threads ? 1 : !made_by_intel() ? most : l.in[1].type == dtype::bf16 ? 2 : 1;
    return larger_of(smaller(by_turns(D), at_once), 1);
  }

  /// Rows that follow one another, `stride` elements apart.
  template <class T> struct row_run {
    const T* at;
    std::int64_t stride;
    ISOTOPE_INLINE const T* operator[](int k) const { return at + k * stride; }
  };
  /// Rows of a cache, of one head of one slot.
  struct cache_rows {
    const view& x;
    std::int64_t at, D, end;  // of the rows that are read
    float* room;              // few rows
    bool split = false;       // rows of bf16 are widened as cached_heads does
    /// Rows t to t + count - 1 as they lie, or widened where they are not of type T. Rows of bf16 are fetched before they are read, in 0.6 to 0.8 of the time on a
    /// Xeon; for those of f32, of twice the bytes, fetching gains nothing.
    template <class T> ISOTOPE_INLINE row_run<T> read(std::int64_t t, int count) const {
      if constexpr (!std::is_same_v<T, float>)
        if (const std::int64_t ahead = smaller(t + in_advance, end - few); ahead > t) {
          const T* next = x.as<const T>() + at + ahead * x.strides[2];
          for (int k = 0; k < few; ++k, next += x.strides[2])
            for (std::int64_t d = 0; d < D; d += 64 / std::int64_t(sizeof(T))) __builtin_prefetch(next + d, 0, 3);
        }
      const std::int64_t from = at + t * x.strides[2];
      if constexpr (std::is_same_v<T, float>)
        if (x.type != dtype::f32) {
          for (int k = 0; k < count; ++k) {
            portable::widen_run(x.data, x.type, from + k * x.strides[2], 1, room + k * floats(D), D);
            if (split) split_elements(room + k * floats(D), D);
          }
          return {room, floats(D)};
        }
      return {x.as<const T>() + from, x.strides[2]};
    }
  };

  /// Some heads of token n from head h on, at most to h_end: rows are read in place. Returns how many, 0 where cached_heads has no such heads.
  template <class T, class... More>
  static std::int64_t in_place(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t n,
                               std::int64_t h, std::int64_t h_end, More... more) {
    constexpr int heads = by_turns(head_size);
    if constexpr (heads > 0) {
      if (size.D != head_size) return 0;
      if constexpr (heads >= 4)
        if (h + 4 <= h_end) return heads_in_place<T, 4>(l, c, size, n, h, more...);
      if constexpr (heads >= 2 && std::is_same_v<T, bfloat16>)
        if (h + 2 <= h_end) return heads_in_place<T, 2>(l, c, size, n, h, more...);
      return heads_in_place<T, 1>(l, c, size, n, h, more...);
    }
    return 0;
  }
  template <class T, int Heads>
  static std::int64_t heads_in_place(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t n,
                                     std::int64_t h, std::int64_t slot, std::int64_t position, float* own) {
    constexpr int Size = head_size;
    using kernel = cached_heads<T, Heads, Size>;
    const std::int64_t S = floats(size.T), first = c.first(position), count = position + 1 - first, each = c.heads / size.G;
    float *const p = own, *const y = p + Heads * S, *const q = y + Heads * Size;
    const auto rows_of = [&](const view& x, std::int64_t from) {
      typename kernel::rows rows{{}, x.strides[2]};
      for (int i = 0; i < Heads; ++i)
        rows.at[i] = x.as<const T>() + slot * x.strides[0] + smaller(from + i, c.heads - 1) / each * x.strides[1] + first * x.strides[2];
      return rows;
    };
    const auto keys = rows_of(l.in[1], h), values = rows_of(l.in[2], h), next = rows_of(l.in[1], h + Heads);
    portable::widen_run(l.in[0].data, l.in[0].type, n * l.in[0].strides[0] + h * Size, 1, q, Heads * Size);
    if constexpr (std::is_same_v<T, bfloat16>) split_elements(q, Heads * Size);
    kernel::score(keys, values, q, count, float(c.scale), p, S);
    float factor[Heads];
    for (int i = 0; i < Heads; ++i) {
      const float total = weigh(p + i * S, count);
      factor[i] = total == 0 ? 0.0f : 1.0f / total;
    }
    kernel::add(values, next, p, S, count, factor, y);
    portable::narrow_run(y, l.out[0].data, l.out[0].type, n * l.out[0].strides[0] + h * Size, Heads * Size);
    return Heads;
  }

  /// Tokens n to n + Count - 1 of one sequence, the first at `position`. `own`: scores (Count, T), results (Count, D), queries (Count, D) and `few` rows (D).
  template <int Count, class T>
  static void queries(const launch& l, const op::attention_cached::constants& c, const op::cache_sizes& size, std::int64_t n,
                      std::int64_t h, std::int64_t slot, std::int64_t position, float* own) {
    const std::int64_t D = size.D, g = h / (c.heads / size.G), S = floats(size.T), W = floats(D);
    float *const p = own, *const y = p + Count * S, *const q = y + Count * W, *const room = q + Count * W;
    const auto rows_of = [&](const view& x, bool split) {
      return cache_rows{x, slot * x.strides[0] + g * x.strides[1], D, position + Count, room, split};
    };
    // A token alone has its dot products by cached_heads, which adds them up in this order.
    const bool split = l.in[1].type == dtype::bf16 && by_turns(D) > 0;
    const cache_rows keys = rows_of(l.in[1], split), values = rows_of(l.in[2], false);
    std::int64_t first[Count], end[Count];  // keys of each query; all see those from first[Count - 1] to end[0]
    for (int i = 0; i < Count; ++i) {
      first[i] = c.first(position + i), end[i] = position + i + 1;
      portable::widen_run(l.in[0].data, l.in[0].type, (n + i) * l.in[0].strides[0] + h * D, 1, q + i * W, D);
      if (split) split_elements(q + i * W, D);
    }
    const std::int64_t from = first[Count - 1], to = end[0];
    const auto score = [&](std::int64_t t, int count) ISOTOPE_INLINE_LAMBDA {
      const row_run<T> row = keys.template read<T>(t, count);
      for (int i = 0; i < Count; ++i)
        if (t >= first[i] && t < end[i]) scores(q + i * W, row, count, D, float(c.scale), p + i * S + t - first[i]);
    };
    const auto add = [&](std::int64_t t, int count) ISOTOPE_INLINE_LAMBDA {
      const row_run<T> row = values.template read<T>(t, count);
      if (t >= from && t < to) {
        const float* w[Count];
        for (int i = 0; i < Count; ++i) w[i] = p + i * S + t - first[i];
        add_rows<Count>(w, row, count, y, W, D);
        return;
      }
      for (int i = 0; i < Count; ++i)
        if (t >= first[i] && t < end[i]) {
          const float* const w[1] = {p + i * S + t - first[i]};
          add_rows<1>(w, row, count, y + i * W, W, D);
        }
    };
    const auto each_key = [&](const auto& run) ISOTOPE_INLINE_LAMBDA {
      std::int64_t t = first[0];
      for (; t < from; ++t) run(t, 1);
      for (; t + few <= to; t += few) run(t, few);
      if (t < to) run(t, int(to - t));
      for (t = to; t < end[Count - 1]; ++t) run(t, 1);
    };
    each_key(score);
    float total[Count];
    for (int i = 0; i < Count; ++i) total[i] = weigh(p + i * S, end[i] - first[i]);
    std::memset(y, 0, std::size_t(Count * W) * 4);
    each_key(add);
    for (int i = 0; i < Count; ++i) {
      const float factor = total[i] == 0 ? 0.0f : 1.0f / total[i];
      for (std::int64_t d = 0; d < D; ++d) y[i * W + d] *= factor;
      portable::narrow_run(y + i * W, l.out[0].data, l.out[0].type, (n + i) * l.out[0].strides[0] + h * D, D);
    }
  }

  /// p[k] = scale q row[k], k < count.
  template <class T>
  ISOTOPE_INLINE static void scores(const float* q, const row_run<T>& row, int count, std::int64_t D, float scale, float* p) {
    constexpr int vectors = int(parts / lanes);
    for (int k = 0; k < count; k += 4) {
      const int last = count - 1;  // sums of a row that is repeated are not used
      const T* const x[4] = {row[k], row[k + 1 < last ? k + 1 : last], row[k + 2 < last ? k + 2 : last], row[k + 3 < last ? k + 3 : last]};
      vector s[4][vectors] = {};
      std::int64_t d = 0;
      for (; d + parts <= D; d += parts)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const vector a = load_vector(q + d + v * lanes);
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) s[j][v] = isa::fma_lanes(a, load_vector(x[j] + d + v * lanes), s[j][v]);
        }
      for (int v = 0; d + v * lanes < D; ++v) {
        const std::int64_t at = d + v * lanes, left = smaller(lanes, D - at);
        for (int j = 0; j < 4; ++j) s[j][v] = isa::fma_lanes(load_some(q + at, left), load_some(x[j] + at, left), s[j][v]);
      }
      vector sums[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 4
        for (int half = vectors / 2; half > 0; half /= 2)
          for (int v = 0; v < half; ++v) s[j][v] += s[j][v + half];
        sums[j] = s[j][0];
      }
      const vector y = add_lanes_of_four(sums) * scale;
      constexpr int apart = int(lanes) / 4;
      const auto four = __builtin_shufflevector(y, y, 0, apart, 2 * apart, 3 * apart);
      if (k + 4 <= count) __builtin_memcpy(p + k, &four, sizeof four);
      else __builtin_memcpy(p + k, &four, std::size_t(count - k) * sizeof *p);
    }
  }

  /// p = exp(p - the largest); returns the sum. Whole vectors are read and written.
  static float weigh(float* p, std::int64_t n) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (std::int64_t i = n; i % lanes != 0; ++i) p[i] = -infinity;
    vector top = vector{} - infinity, sum{};
    for (std::int64_t i = 0; i < n; i += lanes) {
      const vector x = load_vector(p + i);
      top = x > top ? x : top;  // a NaN stays in p, and makes the sum NaN
    }
    float most_of = -infinity;
    for (int k = 0; k < lanes; ++k) most_of = top[k] > most_of ? top[k] : most_of;
    const float base = most_of == -infinity ? 0.0f : most_of;  // no key has a weight if all scores are -infinity
    for (std::int64_t i = 0; i < n; i += lanes) {
      const vector x = lanewise::weight(load_vector(p + i) - base);
      __builtin_memcpy(p + i, &x, sizeof x);
      sum += x;
    }
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0];
  }

  /// y[i W + d] += w[i][k] row[k][d], k ascending.
  template <int Count, class T>
  ISOTOPE_INLINE static void add_rows(const float* const (&w)[Count], const row_run<T>& row, int count, float* y, std::int64_t W,
                                      std::int64_t D) {
    const auto chunk = [&]<int Vectors>(std::int64_t d, std::int64_t left, std::integral_constant<int, Vectors>) ISOTOPE_INLINE_LAMBDA {
      vector s[Count][Vectors];
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) s[i][v] = load_vector(y + i * W + d + v * lanes);
      for (int k = 0; k < count; ++k) {
        vector x[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v)
          x[v] = left >= Vectors * lanes ? load_vector(row[k] + d + v * lanes) : load_some(row[k] + d, left);
#pragma GCC unroll 4
        for (int i = 0; i < Count; ++i) {
          const vector f = w[i][k] - vector{};
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) s[i][v] = isa::fma_lanes(f, x[v], s[i][v]);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < Count; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) __builtin_memcpy(y + i * W + d + v * lanes, &s[i][v], sizeof(vector));
    };
    std::int64_t d = 0;
    for (; d + wide * lanes <= D; d += wide * lanes) chunk(d, wide * lanes, std::integral_constant<int, wide>{});
    for (; d + lanes <= D; d += lanes) chunk(d, lanes, std::integral_constant<int, 1>{});
    if (d < D) chunk(d, D - d, std::integral_constant<int, 1>{});
  }
};

/// Tokens of a prompt, in blocks where the plan is not batch invariant, and any other tokens.
/// @tparam Unit  as in matmul
template <class P, class Unit = matrix_unit> class cached_attention_of {
 public:
  using prompts = prompt_attention<P, Unit>;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t rows = s.in[0][0], heads = s.constants<op::attention_cached>().heads;
    if (!takes_prompts(s.constants<op::attention_cached>(), rows)) return attention_cached::scratch(s);
    return piece_bytes(rows) + 4 * slice_floats(s.in[1][2], s.in[1][3]) * smaller(rows * heads, portable::max_workers);
  }
  static void run(const launch& l) {
    const auto c = l.constants<op::attention_cached>();
    const op::cache_sizes size(l.in[1].dims);
    const std::int64_t rows = l.in[0].dims[0];
    if (!takes_prompts(c, rows)) return attention_cached::run(l);
    const auto *sequence = l.in[3].as<const std::int32_t>(), *position = l.in[4].as<const std::int32_t>();
    auto* const pieces = static_cast<token_piece*>(l.scratch);
    std::int64_t count = 0;
    double nsec = 0;  // in a block, a query takes a fifth of what it takes alone
    for (std::int64_t n = 0; n < rows;) {
      const bool there = size.has(sequence[n], position[n]);
      std::int64_t together = 1;
      while (there && n + together < rows && sequence[n + together] == sequence[n] && position[n + together] == position[n] + together &&
             size.has(sequence[n], position[n + together]))
        ++together;
      const bool prompt = together >= prompts::least;
      const std::int64_t some = prompt ? prompts::most : attention_cached::each(rows);
      for (const std::int64_t end = n + together; n < end; n += pieces[count++].count) {
        pieces[count] = {std::int32_t(n), std::int32_t(smaller(some, end - n)), prompt};
        for (std::int64_t k = n; there && k < n + pieces[count].count; ++k)
          nsec += attention_cached::nsec_of(l, c, size, position[k]) * (prompt ? 0.2 : 1.0);
      }
    }
    const prompts prompt(l, c);
    auto* const slices = reinterpret_cast<float*>(static_cast<char*>(l.scratch) + piece_bytes(rows));
    portable::for_uneven_tasks(l, count * c.heads, double(c.heads) * nsec, [&](std::int64_t task, int slice) {
      const token_piece& piece = pieces[count - 1 - task / c.heads];  // those at the end of a prompt take longest
      const std::int64_t h = task % c.heads, n = piece.first;
      float* const own = slices + slice * slice_floats(size.T, size.D);
      if (!piece.prompt || !prompt.run(piece, h, sequence[n], position[n], own))
        attention_cached::tokens(l, c, size, n, n + piece.count, h, h + 1, own);
    });
  }

 private:
  static constexpr bool takes_prompts(const op::attention_cached::constants& c, std::int64_t rows) {
    return !c.batch_invariant && rows >= prompts::least;
  }
  static constexpr std::int64_t piece_bytes(std::int64_t rows) { return whole(rows * std::int64_t(sizeof(token_piece)), 64); }
  static constexpr std::int64_t slice_floats(std::int64_t T, std::int64_t D) {
    return larger_of(attention_cached::slice_floats(T, D), prompts::slice_floats(D));
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::attention_cached, P, kernels::native> : native::cached_attention_of<P> {};
}  // namespace isotope::cpu
