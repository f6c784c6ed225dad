#pragma once
/// Sums in stages of bounded length: an invocation of each stage adds up to 1,024 terms and leaves pairs of floats to the next stage.
#include <isotope/shaders/reference_sum.hpp>

#include "items.hpp"

namespace isotope::vulkan::reference {

inline constexpr std::int64_t part_terms = 1024;
constexpr std::int64_t parts_of(std::int64_t terms) { return terms <= part_terms ? 1 : (terms + part_terms - 1) / part_terms; }
/// Returns the bytes of the pairs of all stages, if the first has `terms` pairs per result.
constexpr std::int64_t pair_bytes(std::int64_t results, std::int64_t terms) {
  std::int64_t bytes = 8 * results * terms;
  while (terms > 1) bytes += 8 * results * (terms = parts_of(terms));
  return bytes;
}
/// Returns the bytes that summing `terms` elements per result needs.
constexpr std::int64_t total_bytes(std::int64_t results, std::int64_t terms) {
  return terms <= part_terms ? 0 : pair_bytes(results, parts_of(terms));
}

inline constexpr std::uint32_t pairs = 100;  // as in sum.comp
struct sum_push {
  std::uint64_t x, y;
  std::uint32_t results, terms, parts, divisor, outer = 0;
  std::array<std::uint32_t, max_rank> dims{}, strides{};
};

/// Where a sum is stored, (results) dense. `divisor` terms make a mean of it.
struct sum_result {
  view y;
  bool mean = false;
  std::int64_t divisor = 0;
};
/// y[i] = sum over `terms` pairs (terms, results) at `at`; the bytes behind them are scratch, pair_bytes in all.
inline void total_of_pairs(const launch& l, recording& r, std::uint64_t at, std::int64_t results, std::int64_t terms,
                           const sum_result& to) {
  for (;;) {
    const auto parts = parts_of(terms), bytes = 8 * results * terms;
    const bool last = parts == 1;
    const std::uint64_t next = last ? to.y.at : at + std::uint64_t(bytes);
    const sum_push push{at, next, word(results), word(terms), word(parts), word(to.divisor)};
    auto c = plain(l);
    c.add(pairs).add(last ? std::uint32_t(to.y.type) : pairs).add(last && to.mean);
    r.add(shaders::reference_sum, c, push, per_item(results * parts), {range(at, bytes)},
          {last ? range(to.y) : range(next, 8 * results * parts)});
    if (last) return;
    at = next;
    terms = parts;
  }
}
/// y[outer] = sum of x over its axes from `x.outer` on; total_bytes of scratch.
inline void total(const launch& l, recording& r, const view& x, const axes_apart& a, std::uint64_t scratch, const sum_result& to) {
  const std::int64_t results = a.results(), terms = a.terms();
  if (results == 0) return;
  const auto parts = parts_of(terms);
  const bool last = parts == 1;
  const sum_push push{
      x.at, last ? to.y.at : scratch, word(results), word(terms), word(parts), word(to.divisor), std::uint32_t(a.outer), a.dims, a.strides};
  auto c = plain(l);
  c.add(x.type).add(last ? std::uint32_t(to.y.type) : pairs).add(last && to.mean);
  r.add(shaders::reference_sum, c, push, per_item(results * parts), {x}, {last ? range(to.y) : range(scratch, 8 * results * parts)});
  if (!last) total_of_pairs(l, r, scratch, results, parts, to);
}

}  // namespace isotope::vulkan::reference
