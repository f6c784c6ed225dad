#pragma once
/// A block of attention scores, keys by queries. Of a block on the diagonal, only register tiles of which a causal query sees something are computed.
///
/// The sums of a tile of 8 x 32 hide the latency of the multiply-add and divide blocks of 64 evenly. 12 rows would leave a rest of 4 and skip less of
/// the block on the diagonal, of which 8 rows compute 10/16 of the scores and 9/16 of the other gemms.
#include <isotope/kernels/cpu/native/gemm/vector_panels.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct score_tile {
  static constexpr std::int64_t block = 64;  // queries and keys: 16 KB of L1
  static constexpr std::int64_t rows = config::vector_registers >= 32 ? 8 : 4, vectors = 3;
  static_assert(block % lanes == 0 && lanes % rows == 0);
  static constexpr std::int64_t nothing_hidden = std::int64_t(-1) << 30;  // hide() counts in 32 bits
  static constexpr std::int64_t no_window = std::int64_t(1) << 31;

  std::int64_t keys, queries;
  std::int64_t shift;   // query q sees the keys k with k + shift <= q
  std::int64_t window;  // and q < k + shift + window

  std::int64_t width() const { return whole(queries, lanes); }
  /// Returns the first query that sees a key of k's register tile.
  std::int64_t first_seeing(std::int64_t k) const { return larger_of(0, k / rows * rows + shift); }
  /// Returns where the scores of key k begin: vectors of queries that see nothing of the register tile are not computed.
  std::int64_t first_made(std::int64_t k) const { return first_seeing(k) / lanes * lanes; }
  /// Returns for how many keys the vector of queries from q on has scores: first_made(k) <= q for these keys.
  std::int64_t made(std::int64_t q) const {
    const std::int64_t last = q + lanes - 1 - shift;
    return last < 0 ? 0 : smaller(keys, last / rows * rows + rows);
  }
  /// Returns how many of these first keys lie before the window of the vector's last query.
  std::int64_t stale(std::int64_t q) const { return smaller(made(q), larger_of(0, q + lanes - shift - window)); }
  /// Returns the first of these keys that not all queries of the vector see; all queries see those from stale(q) to here.
  std::int64_t clear(std::int64_t q) const { return smaller(made(q), larger_of(0, q - shift + 1)); }
  /// Returns how many keys the queries before `end` see.
  std::int64_t seen(std::int64_t end) const { return smaller(keys, larger_of(0, end - shift)); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
