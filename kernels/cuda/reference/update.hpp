#pragma once
/// Accumulation, the global norm, clipping and the optimisers.
#include <isotope/fatbins/reference_optimizer.hpp>
#include <isotope/fatbins/reference_update.hpp>
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>

#include "optimizer.hpp"
#include "total.hpp"
#include "update.h"

namespace isotope::cuda {

template <class P> struct kernel<op::accumulate, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[1], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    if (n == 0) return;
    const bool add = (l.accumulate & 1) != 0;
    std::vector<range> reads{x};
    if (add) reads.push_back(y);
    r.add(fatbins::reference_update, "reference_accumulate", gpu::accumulate_arguments{tensor_of(x), tensor_of(y), n, add ? 1 : 0},
          per_item(n), std::move(reads), {y});
  }
};

namespace reference {

/// Returns the bytes of the parts of all stages that sum n squares.
constexpr std::int64_t square_bytes(std::int64_t n) {
  std::int64_t parts = parts_of(n), bytes = 8 * parts;
  while (parts > 1) bytes += 8 * (parts = parts_of(parts));
  return bytes;
}
/// Records the sum of the squares of x as one f64 in scratch.
inline range sum_of_squares(const launch& l, recording& r, const view& x) {
  std::int64_t n = x.dims.count();
  std::int32_t type = number_of(x.type);
  range terms = x;
  std::uint64_t to = l.scratch;
  for (;;) {
    const std::int64_t parts = parts_of(n);
    const range result(to, 8 * parts);
    r.add(fatbins::reference_update, "reference_squares", gpu::squares_arguments{terms.first, to, n, parts, type}, per_item(parts), {terms},
          {result});
    if (parts == 1) return result;
    n = parts;
    type = number_of(dtype::f64);
    terms = result;
    to = result.end;
  }
}

}  // namespace reference

template <class P> struct kernel<op::global_norm, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::square_bytes(s.in[0].count()); }
  static void record(const launch& l, recording& r) {
    const range squares = reference::sum_of_squares(l, r, l.in[0]);
    r.add(fatbins::reference_update, "reference_global_norm", gpu::norm_arguments{squares.first, l.out[0].at, l.scalars}, per_item(1),
          {squares, scalars_of(l)}, {l.out[0]});
  }
};

template <class P> struct kernel<op::clip_norm, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::square_bytes(s.in[0].count()); }
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const std::int64_t n = g.dims.count();
    if (n == 0) return;
    const range squares = reference::sum_of_squares(l, r, g);
    r.add(fatbins::reference_update, "reference_clip_norm",
          gpu::clip_arguments{g.at, squares.first, l.scalars, n, reference::number_of(g.type)}, per_item(n), {g, squares, scalars_of(l)},
          {g});
  }
};

template <class P> struct kernel<op::clip_value, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const std::int64_t n = g.dims.count();
    if (n == 0) return;
    r.add(fatbins::reference_update, "reference_clip_value", gpu::clip_arguments{g.at, 0, l.scalars, n, reference::number_of(g.type)},
          per_item(n), {g, scalars_of(l)}, {g});
  }
};

namespace reference {

inline void optimize(const launch& l, recording& r, std::string_view function, std::size_t moments) {
  const update_operands o(l, moments);
  const std::int64_t n = o.w.dims.count();
  if (n == 0) return;
  std::vector<range> writes(l.out.begin(), l.out.end()), reads = writes;
  reads.insert(reads.end(), {o.g, o.norm, o.loss, scalars_of(l)});
  r.add(fatbins::reference_optimizer, function, o.arguments(0, n), per_item(n), std::move(reads), std::move(writes));
}

}  // namespace reference

template <class P> struct kernel<op::adamw, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::optimize(l, r, "reference_adamw", 2); }
};
template <class P> struct kernel<op::sgd, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::optimize(l, r, "reference_sgd", 1); }
};

}  // namespace isotope::cuda
