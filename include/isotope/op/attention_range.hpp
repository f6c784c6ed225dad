#pragma once
/// Which keys a query of attention sees, and which queries see a key. Kernels that walk tiles ask here which of them they may skip.
#include <algorithm>
#include <cstdint>

#include "../core/op_info.hpp"

namespace isotope::op {

/// Numbers first, first + 1, .. end - 1.
struct index_range {
  std::int64_t first = 0, end = 0;
  friend constexpr bool operator==(const index_range&, const index_range&) = default;
};

/// Queries are aligned with the last keys: query s stands at key s + T - S. Causal: it sees that key and those before it; with a window w the last
/// w of these. Causal attention has at most as many queries as keys.
struct attention_range {
  std::int64_t S, T;
  bool causal;
  std::int64_t window;  // 0: none

  /// A window of all keys or more is none.
  constexpr attention_range(const attributes& a, std::int64_t queries, std::int64_t keys)
      : S(queries), T(keys), causal(a.i[2] != 0), window(a.i[5] < keys ? a.i[5] : 0) {}

  /// The keys that query s sees.
  constexpr index_range keys(std::int64_t s) const {
    const std::int64_t own = s + T - S;
    return {window == 0 ? 0 : std::max(std::int64_t(0), own + 1 - window), causal ? own + 1 : T};
  }
  /// The queries that see key t.
  constexpr index_range queries(std::int64_t t) const {
    const std::int64_t own = t + S - T, first = causal ? std::max(std::int64_t(0), own) : 0;
    return {first, window == 0 ? S : std::max(first, std::min(S, own + window))};
  }
  /// The keys that some query from `first` to end - 1 sees, from a multiple of `tile` on. There is such a query.
  constexpr index_range keys_in_tiles(std::int64_t first, std::int64_t end, std::int64_t tile) const {
    return {keys(first).first / tile * tile, std::min(T, keys(end - 1).end)};
  }
  /// Pairs of a query and a key that it sees.
  constexpr std::int64_t pairs() const {
    if (!causal) return S * T;
    const auto triangle = [](std::int64_t n) { return n * (n + 1) / 2; };
    if (window == 0) return triangle(T) - triangle(T - S);
    const std::int64_t less = std::clamp(window - (T - S + 1), std::int64_t(0), S);  // the first queries, which see less than a window
    return triangle(T - S + less) - triangle(T - S) + (S - less) * window;
  }
};

}  // namespace isotope::op
