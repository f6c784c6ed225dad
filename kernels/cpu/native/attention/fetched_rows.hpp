#pragma once
/// Rows of heads that are fetched into L2 while others are multiplied. A head's rows lie far from each other, so that no processor foresees the next head: where
/// the products before have put them out of L2, waiting for them takes a quarter of attention (8 sequences of 64, D = 32, Zen 4).
#include <isotope/kernels/cpu/attention/heads.hpp>
#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// The first `count` rows from `at` on. They are fetched a few at a time, beside each register tile, since a core that waits for many lines stalls.
struct fetched_rows {
  static constexpr std::int64_t line = 64;  // bytes
  const char* at = nullptr;
  std::int64_t stride = 0, bytes = 0, count = 0;  // from row to row; of a row

  static fetched_rows of(const portable::head_rows& x, std::int64_t D, std::int64_t count) {
    const auto size = std::int64_t(size_of(x.type));
    return {static_cast<const char*>(x.data) + x.at * size, x.stride * size, D * size, count};
  }
  /// Fetches rows [first, first + some), as far as there are so many.
  void fetch(std::int64_t first, std::int64_t some) const {
    each_line(first, some, [](const char* x) ISOTOPE_INLINE_LAMBDA { __builtin_prefetch(x, 0, 2); });
  }
  /// The same, to be written.
  void fetch_to_write(std::int64_t first, std::int64_t some) const {
    each_line(first, some, [](const char* x) ISOTOPE_INLINE_LAMBDA { __builtin_prefetch(x, 1); });
  }

 private:
  template <class F> ISOTOPE_INLINE void each_line(std::int64_t first, std::int64_t some, const F& f) const {
    const std::int64_t end = smaller(first + some, count);
    for (std::int64_t r = first; r < end; ++r)
      for (std::int64_t k = 0; k < bytes; k += line) f(at + r * stride + k);
  }
};

/// What is fetched while a block of queries meets a block of keys: the next keys and values, the queries of the next block and, at the end, the results' rows.
/// The next head has the same place in memory one head further, or that of the first head in the rows that follow; where tasks have another order, lines are
/// fetched in vain.
struct coming_block {
  fetched_rows keys, values, queries, results;

  /// @param n             queries from q0 on
  /// @param k0            of the block of keys
  /// @param first, last   keys that the queries see
  coming_block(const launch& l, const portable::attention_heads& h, std::int64_t b, std::int64_t head, std::int64_t q0, std::int64_t n,
               std::int64_t k0, std::int64_t first, std::int64_t last) {
    constexpr std::int64_t block = portable::attention_heads::block;
    const std::int64_t queries_of = h.H / h.G, next = k0 + block;  // heads of queries that share keys and values
    const bool follows = head + 1 < h.H;
    const auto take = [&](std::int64_t group, std::int64_t from, std::int64_t count) {
      keys = fetched_rows::of(h.rows(l.in, 1, b, group).from_row(from), h.D, count);
      values = fetched_rows::of(h.rows(l.in, 2, b, group).from_row(from), h.D, count);
    };
    if (next < last) {
      take(head / queries_of, next, smaller(block, last - next));
    } else {
      results = fetched_rows::of(h.rows(l.out[0], b, head).from_row(q0), h.D, n);
      if (follows) take((head + 1) / queries_of, first, smaller(block, last - first));
      else if (h.H > 1) take(0, h.T + first, smaller(block, last - first));
    }
    // A prompt's heads are launches of their own.
    if (k0 == first) {
      queries = fetched_rows::of(follows || h.H == 1 ? h.rows(l.in, 0, b, head + 1).from_row(q0) : h.rows(l.in, 0, b, 0).from_row(h.S + q0),
                                 h.D, n);
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
