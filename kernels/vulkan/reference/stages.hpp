#pragma once
/// Reductions to f32 in stages of bounded length: what extremum and prod share. reference_extremum and reference_prod take the same push constants.
#include <initializer_list>

#include <isotope/op/sum.hpp>

#include "total.hpp"

namespace isotope::vulkan::reference {

/// Returns the bytes for the results of the parts in f32, which holds every 16-bit number, too.
constexpr std::int64_t stage_bytes(std::int64_t results, std::int64_t terms) {
  std::int64_t bytes = 0;
  while (terms > part_terms) bytes += 4 * results * (terms = parts_of(terms));
  return bytes;
}
/// y (parts, results) = the terms of each result, those of a part reduced. `own`: the shader's constants from 4 on.
inline void stage(const launch& l, recording& r, const shader& code, std::initializer_list<std::uint32_t> own, const view& x,
                  const axes_apart& a, std::int64_t parts, const view& y) {
  const std::int64_t results = a.results();
  if (results == 0) return;
  const struct {
    std::uint64_t x, y;
    std::uint32_t results, terms, parts, outer;
    std::array<std::uint32_t, max_rank> dims, strides;
  } push{x.at, y.at, word(results), word(a.terms()), word(parts), std::uint32_t(a.outer), a.dims, a.strides};
  auto c = plain(l).add(x.type).add(y.type);
  for (const auto w : own) c.add(w);
  r.add(code, c, push, per_item(results * parts), {x}, {y});
}
/// Output 0 = input 0 reduced over the axes of a bit mask; stage_bytes of scratch.
inline void stages(const launch& l, recording& r, const shader& code, std::initializer_list<std::uint32_t> own, std::int64_t mask) {
  view x = l.in[0];
  const auto results = l.out[0].dims.count();
  auto at = l.scratch;
  for (auto terms = op::reduction::length(x.dims, mask); terms > part_terms;) {
    const auto parts = parts_of(terms);
    const shape dims{parts, results};
    const view reduced{at, 4 * parts * results, dims, dense_strides(dims), dtype::f32};
    stage(l, r, code, own, x, axes_apart(x, mask), parts, reduced);
    x = reduced;
    mask = 1;
    terms = parts;
    at += std::uint64_t(reduced.bytes);
  }
  stage(l, r, code, own, x, axes_apart(x, mask), 1, l.out[0]);
}

}  // namespace isotope::vulkan::reference
