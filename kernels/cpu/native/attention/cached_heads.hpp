#pragma once
/// Scores of cached keys, and sums of cached values, for one token and some heads whose rows are read by turns. Bound by reading the caches.
///
/// A head's rows are a stream of their own in memory. A loop that only reads has 25 GB/s on a thread of Zen 4 from one stream, and 28 to 30 from four by turns, as
/// more lines are under way; 22 where it fetches another stream line by line meanwhile. Loads have to ascend in each stream: keys in groups of four rows, of which
/// the last is read first, take 2.2 times as long. Rows are fetched a kilobyte ahead, which matters at the start and end of streams; after the last keys come the
/// first values, and after these the keys of the next heads.
///
/// Rows of bf16 are widened by a shift and a mask of words, so a vector has the elements of even indices, and the next one those of odd ones ("split").
#include <bit>
#include <utility>

#include <isotope/kernels/cpu/native/gemm/pack.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Adds the upper half of each block of Size lanes to the lower half: those of a, then those of b.
template <int Size> ISOTOPE_INLINE vector add_halves(const vector& a, const vector& b) {
  return [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
    constexpr int half = Size / 2;
    return __builtin_shufflevector(a, b, (K / half * Size + K % half)...) +
           __builtin_shufflevector(a, b, (K / half * Size + K % half + half)...);
  }(std::make_integer_sequence<int, int(lanes)>{});
}
/// The sums of the lanes of `Count` vectors x(first), x(first + 1), ..., which are made in this order: lane k lanes / Count of the result is that of x(first + k)
/// where Count is `lanes`; else lanes / Count lanes are partial sums.
template <int Count, class Make> ISOTOPE_INLINE vector add_lanes(const Make& x, int first = 0) {
  if constexpr (Count == 1) {
    return x(first);
  } else {
    const vector low = add_lanes<Count / 2>(x, first), high = add_lanes<Count / 2>(x, first + Count / 2);
    return add_halves<int(lanes) / Count * 2>(low, high);
  }
}

/// The sums of the lanes of four vectors: lane k lanes / 4 of the result is that of x[k]. Each sum adds the upper half of its lanes to the lower half, again and
/// again.
ISOTOPE_INLINE vector add_lanes_of_four(const vector (&x)[4]) {
  vector y = add_lanes<4>([&](int k) ISOTOPE_INLINE_LAMBDA { return x[k]; });
  return [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
    if constexpr (lanes >= 16) y += __builtin_shufflevector(y, y, (K ^ 2)...);
    if constexpr (lanes >= 8) y += __builtin_shufflevector(y, y, (K ^ 1)...);
    return y;
  }(std::make_integer_sequence<int, int(lanes)>{});
}

/// Two vectors of bf16 as f32: the elements of even indices, and those of odd ones.
ISOTOPE_INLINE void load_split(const bfloat16* x, vector& even, vector& odd) {
  using pairs __attribute__((vector_size(sizeof(vector)))) = std::uint32_t;
  pairs w;
  __builtin_memcpy(&w, x, sizeof w);
  even = std::bit_cast<vector>(w << 16), odd = std::bit_cast<vector>(w & 0xffff'0000u);
}
/// Puts n elements into that order, a multiple of two vectors.
inline void split_elements(float* x, std::int64_t n) {
  [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < n; i += 2 * lanes) {
      const vector a = load_vector(x + i), b = load_vector(x + i + lanes);
      const vector even = __builtin_shufflevector(a, b, (2 * K)...), odd = __builtin_shufflevector(a, b, (2 * K + 1)...);
      __builtin_memcpy(x + i, &even, sizeof even);
      __builtin_memcpy(x + i + lanes, &odd, sizeof odd);
    }
  }(std::make_integer_sequence<int, int(lanes)>{});
}

/// Rows of some heads, `stride` elements apart.
template <class T, int Heads> struct rows_of_heads {
  const T* at[Heads];
  std::int64_t stride;
};

/// @tparam Size  of a head
template <class T, int Heads, int Size> class cached_heads {
 public:
  using rows = rows_of_heads<T, Heads>;

  /// p[h S + t] = scale q[h] . keys[h][t] for t < count; p has room for whole vectors. Rows of `next` are fetched at the end.
  ///
  /// @param q  (Heads,Size), split for keys in bf16
  static void score(const rows& keys, const rows& next, const float* q, std::int64_t count, float scale, float* p, std::int64_t S) {
    constexpr int some = int(lanes) / Heads;
    vector query[Heads][vectors];
    for (int h = 0; h < Heads; ++h)
      for (int v = 0; v < vectors; ++v) query[h][v] = load_vector(q + h * Size + v * lanes);
    const auto run = [&](std::int64_t t, const rows& coming, std::int64_t to, std::int64_t last) ISOTOPE_INLINE_LAMBDA {
      const vector sums = scale * add_lanes<int(lanes)>([&](int k) ISOTOPE_INLINE_LAMBDA {
                            const int h = k % Heads;
                            const std::int64_t row = t + k / Heads;
                            fetch(coming.at[h] + (to + k / Heads) * coming.stride);
                            return dot(query[h], keys.at[h] + (row < last ? row : last) * keys.stride);
                          });
      const vector by_heads = [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
        return __builtin_shufflevector(sums, sums, (K % some * Heads + K / some)...);
      }(std::make_integer_sequence<int, int(lanes)>{});
#pragma GCC unroll 4
      for (int h = 0; h < Heads; ++h) __builtin_memcpy(p + h * S + t, reinterpret_cast<const char*>(&by_heads) + h * some * 4, some * 4);
    };
    std::int64_t t = 0;
    for (; t + some + ahead <= count; t += some) run(t, keys, t + ahead, t + some);
    const std::int64_t fetched = t;
    for (; t + some <= count; t += some) run(t, next, t - fetched, t + some);
    if (t < count) run(t, next, t - fetched, count - 1);  // sums of a row that is repeated are not used
  }

  /// y[h] = (p[h S] values[h][0] + p[h S + 1] values[h][1] + ...) factor[h], `count` values in this order.
  ///
  /// @param y  (Heads,Size)
  static void add(const rows& values, const rows& next, const float* p, std::int64_t S, std::int64_t count, const float* factor, float* y) {
    vector s[Heads][vectors] = {};
    const auto run = [&](std::int64_t t, const rows& coming, std::int64_t to) ISOTOPE_INLINE_LAMBDA {
#pragma GCC unroll 4
      for (int h = 0; h < Heads; ++h) {
        fetch(coming.at[h] + to * coming.stride);
        vector x[vectors];
        load(values.at[h] + t * values.stride, x);
        const vector f = p[h * S + t] - vector{};
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) s[h][v] = isa::fma_lanes(f, x[v], s[h][v]);
      }
    };
    std::int64_t t = 0;
    for (; t + ahead < count; ++t) run(t, values, t + ahead);
    for (const std::int64_t fetched = t; t < count; ++t) run(t, next, t - fetched);
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v += 2) put(s[h][v] * factor[h], s[h][v + 1] * factor[h], y + h * Size + v * lanes);
  }

 private:
  static constexpr bool splits = std::is_same_v<T, bfloat16>;
  static constexpr int vectors = Size / int(lanes), bytes = Size * int(sizeof(T)), sums = 16 / int(lanes);
  static constexpr std::int64_t ahead = bytes >= 1024 ? 1 : 1024 / bytes;  // rows
  static_assert(Size % (2 * lanes) == 0 && lanes % Heads == 0);

  ISOTOPE_INLINE static void fetch(const T* row) {
#pragma GCC unroll 8
    for (int k = 0; k < bytes; k += 64) __builtin_prefetch(reinterpret_cast<const char*>(row) + k, 0, 2);
  }
  ISOTOPE_INLINE static void load(const T* row, vector (&x)[vectors]) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v += 2) {
      if constexpr (splits) load_split(row + v * lanes, x[v], x[v + 1]);
      else x[v] = load_vector(row + v * lanes), x[v + 1] = load_vector(row + (v + 1) * lanes);
    }
  }
  /// 16 partial sums, of which those that a vector has not are added.
  ISOTOPE_INLINE static vector dot(const vector (&q)[vectors], const T* row) {
    vector x[vectors], s[sums] = {};
    load(row, x);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) s[v % sums] = isa::fma_lanes(q[v], x[v], s[v % sums]);
    if constexpr (sums == 2) s[0] += s[1];
    return s[0];
  }
  ISOTOPE_INLINE static void put(const vector& a, const vector& b, float* y) {
    [&]<int... K>(std::integer_sequence<int, K...>) ISOTOPE_INLINE_LAMBDA {
      const vector low = splits ? __builtin_shufflevector(a, b, (K / 2 + K % 2 * int(lanes))...) : a;
      const vector high = splits ? __builtin_shufflevector(a, b, (K / 2 + K % 2 * int(lanes) + int(lanes) / 2)...) : b;
      __builtin_memcpy(y, &low, sizeof low);
      __builtin_memcpy(y + lanes, &high, sizeof high);
    }(std::make_integer_sequence<int, int(lanes)>{});
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
