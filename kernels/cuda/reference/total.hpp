#pragma once
/// Sums in stages of bounded length: a thread of each stage adds up to 1,024 terms and leaves an f64 to the next stage.
#include <isotope/fatbins/reference_sum.hpp>

#include "items.hpp"
#include "sum.h"

namespace isotope::cuda::reference {

inline constexpr std::int64_t part_terms = 1024;
constexpr std::int64_t parts_of(std::int64_t terms) { return terms <= part_terms ? 1 : (terms + part_terms - 1) / part_terms; }
/// Returns the bytes of the parts of all stages of a reduction, with `size` bytes for each.
constexpr std::int64_t stage_bytes(std::int64_t results, std::int64_t terms, std::int64_t size) {
  std::int64_t bytes = 0;
  while (terms > part_terms) bytes += size * results * (terms = parts_of(terms));
  return bytes;
}
/// Returns the bytes that summing `terms` elements per result needs.
constexpr std::int64_t total_bytes(std::int64_t results, std::int64_t terms) { return stage_bytes(results, terms, 8); }

/// Parts (parts, results) at `at`, with an axis for each.
inline view parts_at(std::uint64_t at, std::int64_t parts, std::int64_t results, dtype t) {
  const shape dims{parts, results};
  return {at, size_of(t) * parts * results, dims, dense_strides(dims), t};
}
/// Reduces x over the axes of a bit mask in stages: `stage(x, axes, parts, y)` records one. The bytes at `scratch` hold the parts in format
/// t.
template <class Stage> void in_stages(const view& x, std::int64_t mask, const view& y, std::uint64_t scratch, dtype t, const Stage& stage) {
  view from = x;
  for (;;) {
    const axes_apart a(from, mask);
    if (a.results() == 0) return;
    const std::int64_t parts = parts_of(a.terms());
    if (parts == 1) return stage(from, a, parts, y);
    const view reduced = parts_at(scratch, parts, a.results(), t);
    stage(from, a, parts, reduced);
    scratch += std::uint64_t(reduced.bytes);
    from = reduced;
    mask = 1;
  }
}

/// y = sum of x over the axes of a bit mask; `divisor` terms make a mean of it. total_bytes of scratch.
inline void total(recording& r, const view& x, std::int64_t mask, const view& y, std::uint64_t scratch, bool mean = false,
                  std::int64_t divisor = 0) {
  in_stages(x, mask, y, scratch, dtype::f64, [&](const view& from, const axes_apart& a, std::int64_t parts, const view& to) {
    const std::int32_t last = parts == 1 ? 1 : 0;
    const gpu::sum_arguments g{
        from.at, to.at, a.axes, a.results(), a.terms(), parts, divisor, a.outer, number_of(from.type), number_of(to.type), mean ? last : 0};
    r.add(fatbins::reference_sum, "reference_sum", g, per_item(a.results() * parts), {from}, {to});
  });
}

}  // namespace isotope::cuda::reference
