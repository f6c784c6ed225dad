#pragma once
/// Decides which attention probabilities are dropped: op::attention_shape::words for a block of queries, four keys per call.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/core/philox_words.hpp>
#include <isotope/op/attention.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

struct attention_dropout {
  bool on;
  std::uint32_t last;  // a random word up to this one drops its probability
  float factor;        // 1 / (1 - p): scales the kept probabilities

  op::attention_constants heads;
  std::int64_t queries;  // of a head

  attention_dropout(const op::attention_constants& c, std::int64_t S)
      : on(c.dropout > 0),
        last(on ? op::attention_shape::last_dropped(c.dropout) : 0),
        factor(float(1 / (1 - c.dropout))),
        heads(c),
        queries(S) {}

  /// kept[n i + q] is all ones if key 4 k + i is kept for query row `row` + q, else 0. Rows count the queries of the heads here, first (b H + h) S + s; words are
  /// drawn for those of all devices. n is the number of queries, a multiple of 16.
  void draw(const launch& l, std::int64_t row, std::int64_t k, int n, std::uint32_t* kept) const {
    const std::int64_t head = row / queries, first = heads.head_number(head / heads.heads, head % heads.heads) * queries + row % queries;
    for (int q0 = 0; q0 < n; q0 += philox_words::width) {
      philox_words w;
      for (int j = 0; j < w.width; ++j) {
        w.c0[j] = std::uint32_t(k);
        w.c1[j] = std::uint32_t(first + q0 + j);
        w.c2[j] = std::uint32_t(l.scalars->counter);
        w.c3[j] = l.ordinal;
      }
      w.run(l.scalars->seed);
      for (int j = 0; j < w.width; ++j) {
        kept[q0 + j] = w.c0[j] > last ? ~0u : 0u;
        kept[n + q0 + j] = w.c1[j] > last ? ~0u : 0u;
        kept[2 * n + q0 + j] = w.c2[j] > last ? ~0u : 0u;
        kept[3 * n + q0 + j] = w.c3[j] > last ? ~0u : 0u;
      }
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
