#pragma once
/// Reductions to f32 in stages of bounded length: what extremum and prod share.
#include <string_view>

#include <isotope/op/sum.hpp>

#include "reduce.h"
#include "total.hpp"

namespace isotope::cuda::reference {

/// Returns the bytes for the results of the parts in f32, which holds every 16-bit number, too.
constexpr std::int64_t stage_bytes(std::int64_t results, std::int64_t terms) { return stage_bytes(results, terms, 4); }

/// y (parts, results) = the terms of each result, those of a part reduced by a kernel with reduce_arguments.
inline void stage(recording& r, const device_code& code, std::string_view function, int which, const view& x, const axes_apart& a,
                  std::int64_t parts, const view& y) {
  const std::int64_t results = a.results();
  if (results == 0) return;
  const gpu::reduce_arguments g{x.at, y.at, a.axes, results, a.terms(), parts, a.outer, number_of(x.type), number_of(y.type), which};
  r.add(code, function, g, per_item(results * parts), {x}, {y});
}
/// Output 0 = input 0 reduced over the axes of a bit mask; stage_bytes of scratch.
inline void stages(const launch& l, recording& r, const device_code& code, std::string_view function, int which, std::int64_t mask) {
  in_stages(l.in[0], mask, l.out[0], l.scratch, dtype::f32, [&](const view& x, const axes_apart& a, std::int64_t parts, const view& y) {
    stage(r, code, function, which, x, a, parts, y);
  });
}

}  // namespace isotope::cuda::reference
