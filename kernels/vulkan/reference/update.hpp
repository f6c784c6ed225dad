#pragma once
/// Accumulation, the global norm, clipping and the optimisers.
#include <isotope/op/accumulate.hpp>
#include <isotope/op/adamw.hpp>
#include <isotope/op/clip_norm.hpp>
#include <isotope/op/clip_value.hpp>
#include <isotope/op/global_norm.hpp>
#include <isotope/op/sgd.hpp>
#include <isotope/shaders/reference_accumulate.hpp>
#include <isotope/shaders/reference_adamw.hpp>
#include <isotope/shaders/reference_clip_norm.hpp>
#include <isotope/shaders/reference_clip_value.hpp>
#include <isotope/shaders/reference_global_norm.hpp>
#include <isotope/shaders/reference_sgd.hpp>
#include <isotope/shaders/reference_squares.hpp>

#include "optimizer.hpp"
#include "total.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::accumulate, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[1], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const reference::axes from(x), into(y);
    const bool add = (l.accumulate & 1) != 0;
    const struct {
      std::uint64_t x, y;
      std::uint32_t count;
      std::array<std::uint32_t, max_rank> dims, x_strides, y_strides;
    } push{x.at, y.at, reference::word(n), into.dims, from.strides, into.strides};
    std::vector<range> reads{x};
    if (add) reads.push_back(y);
    r.add(shaders::reference_accumulate, reference::plain(l).add(x.type).add(y.type).add(add), push, reference::per_item(n), reads, {y});
  }
};

namespace reference {

inline constexpr std::int64_t square_part_bytes = 12;
/// Returns the bytes of the parts of all stages that sum n squares.
constexpr std::int64_t square_bytes(std::int64_t n) {
  std::int64_t parts = parts_of(n), bytes = square_part_bytes * parts;
  while (parts > 1) bytes += square_part_bytes * (parts = parts_of(parts));
  return bytes;
}
/// Records the sum of the squares of x as one part in scratch.
inline range sum_of_squares(const launch& l, recording& r, const view& x) {
  auto n = x.dims.count();
  range terms = x;
  auto to = l.scratch;
  for (bool of_parts = false;; of_parts = true) {
    const auto parts = parts_of(n);
    const range result(to, square_part_bytes * parts);
    const struct {
      std::uint64_t x, y;
      std::uint32_t terms, parts;
    } push{terms.first, to, word(n), word(parts)};
    r.add(shaders::reference_squares, plain(l).add(x.type).add(of_parts), push, per_item(parts), {terms}, {result});
    if (parts == 1) return result;
    n = parts;
    terms = result;
    to = result.end;
  }
}

}  // namespace reference

template <class P> struct kernel<op::global_norm, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::square_bytes(s.in[0].count()); }
  static void record(const launch& l, recording& r) {
    const range squares = reference::sum_of_squares(l, r, l.in[0]);
    const struct {
      std::uint64_t squares, norm, scalars;
    } push{squares.first, l.out[0].at, l.scalars};
    r.add(shaders::reference_global_norm, reference::plain(l), push, {}, {squares, reference::scalars_of(l)}, {l.out[0]});
  }
};

template <class P> struct kernel<op::clip_norm, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::square_bytes(s.in[0].count()); }
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const auto n = g.dims.count();
    if (n == 0) return;
    const range squares = reference::sum_of_squares(l, r, g);
    const struct {
      std::uint64_t g, squares, scalars;
      std::uint32_t count;
    } push{g.at, squares.first, l.scalars, reference::word(n)};
    r.add(shaders::reference_clip_norm, reference::plain(l).add(g.type), push, reference::per_item(n),
          {g, squares, reference::scalars_of(l)}, {g});
  }
};

template <class P> struct kernel<op::clip_value, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view& g = l.out[0];
    const auto n = g.dims.count();
    if (n == 0) return;
    const struct {
      std::uint64_t g, scalars;
      std::uint32_t count;
    } push{g.at, l.scalars, reference::word(n)};
    r.add(shaders::reference_clip_value, reference::plain(l).add(g.type), push, reference::per_item(n), {g, reference::scalars_of(l)}, {g});
  }
};

namespace reference {

inline void optimize(const launch& l, recording& r, const shader& code, std::size_t moments) {
  const update_operands o(l, moments);
  const auto n = o.w.dims.count();
  if (n == 0) return;
  std::vector<range> writes(l.out.begin(), l.out.end()), reads = writes;
  reads.insert(reads.end(), {o.g, o.norm, o.loss, scalars_of(l)});
  r.add(code, o.specialization(plain(l), o.is.clips), o.push(0, n), per_item(n), reads, writes);
}

}  // namespace reference

template <class P> struct kernel<op::adamw, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::optimize(l, r, shaders::reference_adamw, 2); }
};
template <class P> struct kernel<op::sgd, P, kernels::reference> {
  static void record(const launch& l, recording& r) { reference::optimize(l, r, shaders::reference_sgd, 1); }
};

}  // namespace isotope::vulkan
