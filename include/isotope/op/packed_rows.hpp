#pragma once
/// Sequences whose rows are packed one after another, as attention_packed and pool read them.
#include <cstdint>

#include "../core/shape_rule.hpp"

namespace isotope::op {

struct packed_rows {
  std::int64_t first = 0, end = 0;

  /// The rows of sequence b out of N rows. Starts outside [0, N] count as the nearest of them; a sequence that ends before it starts is empty.
  static constexpr packed_rows of(const std::int32_t* starts, std::int64_t b, std::int64_t N) {
    const auto within = [N](std::int64_t row) { return row < 0 ? 0 : row > N ? N : row; };
    const packed_rows r{within(starts[b]), within(starts[b + 1])};
    return r.end > r.first ? r : packed_rows{r.first, r.first};
  }
  constexpr std::int64_t count() const { return end - first; }

  /// Whether operand k holds the starts of sequences; reports it if not.
  static constexpr bool check(shape_rule& r, int k) {
    const shape& s = r.dims(k);
    return r.require(s.rank == 1 && s[0] >= 1 && !s.late(0), "the starts of sequences must be [B+1]") &&
           r.require(r.type(k) == dtype::i32, "the starts of sequences must be i32");
  }
};

}  // namespace isotope::op
